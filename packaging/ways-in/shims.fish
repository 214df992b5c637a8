# Puts the shims of this host in front of the programs that they stand for, in every fish. See rungate-shim(8).

set --path --export --global PATH /etc/rungate/shims (string match --invert -- /etc/rungate/shims $PATH)
