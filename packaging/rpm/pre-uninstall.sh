#!/bin/sh
# $1 is how many versions will be left: none, when it is removed and not replaced.
if [ "$1" -eq 0 ]; then
  if [ -d /run/systemd/system ]; then
    systemctl --no-reload disable --now rungate-overdue.timer rungate-metrics.timer rungate-measure.service rungate-agent.socket || true
    # Programs keep running, and the agent's state stays in /run until the next boot.
    systemctl stop rungate-metrics.service rungate-agent.service || true
  fi
  # Without this, node_exporter would serve the last metrics for ever. Another file, as of a drop-in, is the administrator's.
  rm -f /var/lib/prometheus/node-exporter/rungate.prom
fi
