# Puts the shims of this host in front of the programs that they stand for, in login shells of sh, bash and their kin, and in
# desktop sessions on X. See rungate-shim(8).

case ":$PATH:" in
  *:/etc/rungate/shims:*) ;;
  *) PATH="/etc/rungate/shims:$PATH" ;;
esac
