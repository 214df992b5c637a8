# fish completes command lines of rungate: "source" this file, or put it where fish looks for completions.
complete --command rungate --keep-order --no-files --arguments "(rungate completions fish -- (commandline --current-process --tokenize --cut-at-cursor) (commandline --current-token --cut-at-cursor) 2>/dev/null)"
