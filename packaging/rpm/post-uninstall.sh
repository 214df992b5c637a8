#!/bin/sh
# Shims are configuration: they stay as dangling links when the package is removed, so that shells
# find the programs behind them. Lock files stay too: programs may hold slots in them.
if [ -d /run/systemd/system ]; then
  systemctl --system daemon-reload || true
fi
