"""A network of nodes, each in a network namespace of its own, whose packets this process carries.

Every node has a TUN device. The process reads its IP packets and writes them to the device of the receiver: at once, late,
out of order, or never, as the rules say. So a cut is what it is on a wire: nothing is refused, TCP sends again.
"""

import fcntl
import heapq
import json
import os
import random
import select
import struct
import subprocess
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TUN = 0x0001
IFF_NO_PI = 0x1000
LONGEST_PACKET = 2048
# What a busy network keeps for later, before it drops.
MOST_LATE = 20_000


def address(number):
    return f"10.77.0.{number}"


class Network:
    """The side of the campaign: rules go to the process that carries the packets."""

    def __init__(self, nodes):
        """`nodes` are the process IDs of the nodes, in the order of their addresses (the first is 1)."""
        self.devices = []
        for number, pid in enumerate(nodes, 1):
            device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            name = f"tun{number}"
            fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI))
            self.devices.append(device)
            self.attach(number, pid)
        ours, theirs = os.pipe()
        self.carrier = os.fork()
        if self.carrier == 0:
            os.close(theirs)
            try:
                carry(self.devices, ours)
            finally:
                os._exit(1)
        os.close(ours)
        self.rules = os.fdopen(theirs, "w", buffering=1)

    def attach(self, number, pid):
        """Puts the device of a node into its network namespace, and gives it its address."""
        name = f"tun{number}"
        run("ip", "link", "set", name, "netns", str(pid))
        inside = ("nsenter", "-t", str(pid), "-n", "ip")
        run(*inside, "addr", "add", f"{address(number)}/24", "dev", name)
        run(*inside, "link", "set", name, "up")

    def rule(self, sender, receiver, drop=0.0, delay=0.0, jitter=0.0):
        """From now on, packets from one node to another are dropped with this probability, and else come this
        number of seconds late, or up to `jitter` more."""
        self.rules.write(json.dumps([sender, receiver, drop, delay, jitter]) + "\n")

    def heal(self):
        """Every packet comes at once."""
        self.rules.write("[]\n")


def run(*words):
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL)


def carry(devices, rules_from):
    poller = select.epoll()
    for device in devices:
        poller.register(device, select.EPOLLIN)
    poller.register(rules_from, select.EPOLLIN)
    rules, late, count, partial = {}, [], 0, b""
    number_of = {device: number for number, device in enumerate(devices, 1)}

    def deliver(receiver, packet):
        try:
            os.write(devices[receiver - 1], packet)
        except OSError:
            # The node is down, or its queue is full: packets get lost.
            pass

    while True:
        now = time.monotonic()
        while late and late[0][0] <= now:
            _, _, receiver, packet = heapq.heappop(late)
            deliver(receiver, packet)
        longest = max(0.0, late[0][0] - time.monotonic()) if late else -1
        for descriptor, _ in poller.poll(longest):
            if descriptor == rules_from:
                told = os.read(rules_from, 1 << 16)
                if not told:
                    os._exit(0)
                *lines, partial = (partial + told).split(b"\n")
                for line in lines:
                    rule = json.loads(line)
                    if rule:
                        rules[rule[0], rule[1]] = rule[2:]
                    else:
                        rules.clear()
                continue
            for _ in range(64):
                try:
                    packet = os.read(descriptor, LONGEST_PACKET)
                except BlockingIOError:
                    break
                except OSError:
                    # The device is down while its node is.
                    break
                # IPv4, from and to one of the nodes.
                if len(packet) < 20 or packet[0] >> 4 != 4 or packet[16:19] != b"\x0a\x4d\x00":
                    continue
                receiver = packet[19]
                if not 1 <= receiver <= len(devices):
                    continue
                drop, delay, jitter = rules.get((number_of[descriptor], receiver), (0, 0, 0))
                if drop and random.random() < drop:
                    continue
                if not delay and not jitter:
                    deliver(receiver, packet)
                elif len(late) < MOST_LATE:
                    count += 1
                    due = time.monotonic() + delay + random.random() * jitter
                    heapq.heappush(late, (due, count, receiver, packet))


if __name__ == "__main__":
    sys.exit("part of tests/jepsen/run")
