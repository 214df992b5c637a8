# bash completes command lines of rungate: "source" this file, or put it where bash-completion looks.
_rungate() {
    # Quoted words are not completed.
    [[ ${COMP_WORDS[COMP_CWORD]} == [\"\']* ]] && return
    mapfile -t COMPREPLY < <(rungate completions bash -- "${COMP_WORDS[@]:0:COMP_CWORD}" "$2" 2>/dev/null)
    if [[ ${COMPREPLY-} == *[/=] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o bashdefault -o nosort -F _rungate rungate
