# tcsh completes command lines of rungate: "source" this file in ~/.tcshrc.
complete rungate 'p@*@`rungate completions tcsh -- "$COMMAND_LINE"`@'
