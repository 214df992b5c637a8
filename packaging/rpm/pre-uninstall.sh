#!/bin/sh
# $1 is how many versions will be left: none, when it is removed and not replaced.
if [ "$1" -eq 0 ] && [ -d /run/systemd/system ]; then
  systemctl --no-reload disable --now rungate-overdue.timer rungate-metrics.timer rungate-measure.service rungate-agent.socket || true
  # Programs keep running, and the agent's state stays in /run until the next boot.
  systemctl stop rungate-agent.service || true
fi
