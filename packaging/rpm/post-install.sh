#!/bin/sh
install -d -m 755 /etc/rungate/policy.d /etc/rungate/shims
# Shims of an installation by hand point to a rungate that will be removed; from now on they point
# to this one.
find /etc/rungate/shims -maxdepth 1 -type l -lname '/usr/local/*/rungate' -exec ln -sf /usr/bin/rungate {} \;
if [ -e /usr/local/bin/rungate ]; then
  echo "rungate: /usr/local/bin/rungate, installed by hand, still comes first in PATH: packaging/install --remove" >&2
fi
if [ -d /run/systemd/system ]; then
  systemd-tmpfiles --create rungate.conf || true
  systemctl --system daemon-reload || true
else
  install -d -m 1777 /run/rungate
  install -d -m 755 /var/log/rungate
  if [ ! -e /var/log/rungate/log.jsonl ]; then
    install -m 642 /dev/null /var/log/rungate/log.jsonl
  fi
fi
