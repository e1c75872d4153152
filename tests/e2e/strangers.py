"""A crowd of strangers that attacks an S3 endpoint without a signature, for test_load.py. It is a process of its own, so
that what it does costs the measuring client nothing but the processor.

    strangers.py ATTACK PORT

reads lines from its standard input: "on" begins the attack, "off" ends it. Each is answered by a line, with the statuses
that the strangers have got until then, and how many got none."""
import collections
import socket
import sys
import threading
import time

FLOODERS = 24  # threads of those who come and go


def message(line, *headers, body=b""):
    return "\r\n".join([f"{line} HTTP/1.1", "Host: strangers", *headers, "", ""]).encode() + body


def silent_form(bucket):
    return message(f"POST /{bucket}", "Content-Type: multipart/form-data; boundary=b", "Content-Length: 1000000", body=b"--b\r\n")


def keys_to_delete(bucket, nodes):
    """A short document that becomes a large tree: of 4 bytes about 100."""
    text = b"<Delete>" + b"<a/>" * nodes + b"</Delete>"
    return message(f"POST /{bucket}?delete", f"Content-Length: {len(text)}", body=text)


# What they do, what each says, how many there are (or, of those who come and go, come a second), of how many addresses.
ATTACKS = {
    "forms_to_no_bucket": ("stay", silent_form("no-such-bucket"), 600, 3),
    "forms": ("stay", silent_form("public"), 600, 3),
    "readers": ("stay", message("GET /public/large"), 300, 5),
    "keys": ("end_together", keys_to_delete("private", 30000), 250, 3),
    "keys_of_an_open_bucket": ("end_together", keys_to_delete("public", 60000), 250, 3),
    "policy": ("come_and_go", message("GET /crafted/" + "a" * 1000), 60, 3),
}


class Strangers:
    def __init__(self, port, does, says, count, addresses):
        self.port, self.does, self.says, self.count, self.addresses = port, does, says, count, addresses
        self.statuses, self.lock = collections.Counter(), threading.Lock()
        self.silent, self.flood, self.ending = [], [], threading.Event()

    def dial(self, i):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.bind((f"127.0.0.{2 + i % self.addresses}", 0))
        s.settimeout(5)
        s.connect(("127.0.0.1", self.port))
        return s

    def note(self, got):
        with self.lock:
            self.statuses[got[9:12].decode() or "none"] += 1

    def say(self, s, what):
        try:
            s.sendall(what)
        except OSError:
            pass  # it was refused in the middle

    def hear(self, s):
        try:
            self.note(s.recv(4096))
        except OSError:
            self.note(b"")

    def stay(self):
        """Each says its word and is silent."""
        for i in range(self.count):
            self.silent.append(self.dial(i))
            self.say(self.silent[-1], self.says)

    def come_and_go(self, i):
        while not self.ending.wait(FLOODERS / self.count):
            with self.dial(i) as s:
                self.say(s, self.says)
                self.hear(s)

    def end_together(self):
        """All send all but the last byte, and then that; again in each second."""
        wait = 0
        while not self.ending.wait(wait):
            began = time.monotonic()
            crowd = [self.dial(i) for i in range(self.count)]
            for s in crowd:
                self.say(s, self.says[:-1])
            for s in crowd:
                self.say(s, self.says[-1:])
            for s in crowd:
                self.hear(s)
                s.close()
            wait = max(0, began + 1 - time.monotonic())

    def on(self):
        self.statuses.clear()
        if self.does == "stay":
            self.stay()
        elif self.does == "end_together":
            self.flood = [threading.Thread(target=self.end_together)]
        else:
            self.flood = [threading.Thread(target=self.come_and_go, args=(i,)) for i in range(FLOODERS)]
        for thread in self.flood:
            thread.start()
        while self.flood and sum(self.statuses.values()) < FLOODERS:
            self.ending.wait(0.01)  # until it is in full swing

    def off(self):
        self.ending.set()
        for thread in self.flood:
            thread.join()
        for s in self.silent:
            s.setblocking(False)
            self.hear(s)
            s.close()
        self.silent, self.flood = [], []
        self.ending.clear()


def main():
    strangers = Strangers(int(sys.argv[2]), *ATTACKS[sys.argv[1]])
    for line in sys.stdin:
        strangers.on() if line.strip() == "on" else strangers.off()
        print(" ".join(f"{status}:{n}" for status, n in sorted(strangers.statuses.items())) or "-", flush=True)


if __name__ == "__main__":
    main()
