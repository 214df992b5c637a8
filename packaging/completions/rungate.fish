complete --keep-order --exclusive --command rungate --arguments "(RUNGATE_COMPLETE=fish rungate -- (commandline --current-process --tokenize --cut-at-cursor) (commandline --current-token))"
