#!/bin/sh
install -d -m 755 /etc/rungate/policy.d /etc/rungate/shims
# Shims of an installation by hand point to a rungate that will be removed; from now on they point
# to this one.
find /etc/rungate/shims -maxdepth 1 -type l -lname '/usr/local/*/rungate' -exec ln -sf /usr/bin/rungate {} \;
if [ -e /usr/local/bin/rungate ]; then
  echo "rungate: /usr/local/bin/rungate, installed by hand, still comes first in PATH: packaging/install --remove" >&2
fi
if grep -qs '^[df] /run/rungate' /etc/tmpfiles.d/rungate.conf; then
  echo "rungate: /etc/tmpfiles.d/rungate.conf, by an earlier rungate init, hides the package's file: mv /etc/tmpfiles.d/rungate.conf /etc/tmpfiles.d/rungate-setup.conf" >&2
fi
if [ -d /run/systemd/system ]; then
  # With the files of the administrator, as at the next boot: another owner and mode of the directory stay.
  systemd-tmpfiles --create --prefix=/run/rungate --prefix=/var/log/rungate || true
  systemctl --system daemon-reload || true
  # It reads the policy as the new programs do, and keeps nothing that a restart loses.
  systemctl --system try-restart rungate-measure.service || true
else
  [ -d /run/rungate ] || install -d -m 1777 /run/rungate
  install -d -m 755 /var/log/rungate
  if [ ! -e /var/log/rungate/log.jsonl ]; then
    install -m 662 /dev/null /var/log/rungate/log.jsonl
  fi
fi
# $1 is how many versions are installed: one, the first time.
if [ "$1" -eq 1 ]; then
  cat <<'NEXT'
rungate limits nothing yet. What to do next:
  rungate init --for agents --dry-run   # as your own user: a policy for coding agents; also gpu, licences, cron, ci
  rungate policy edit                   # as root: the policy of this host
  rungate doctor                        # what is missing
NEXT
else
  status=0
  rungate policy check >/dev/null 2>&1 || status=$?
  if [ "$status" -eq 1 ]; then
    echo "rungate: this version finds something to correct in the policy; with a fault in it, launches are refused: rungate policy check"
  fi
  # The name of a program that was replaced ends in "(deleted)".
  for exe in /proc/[0-9]*/exe; do
    case $(readlink "$exe" || true) in
      /usr/*bin/rungate-agent*" (deleted)")
        pid=${exe%/exe}
        pid=${pid#/proc/}
        how="systemctl restart rungate-agent.service"
        [ -d /run/systemd/system ] || how="kill it, and start it again"
        echo "rungate: the agent, PID $pid, still runs the old program: $how"
        ;;
    esac
  done
fi
