"""on_a_terminal.py NAME=VALUE… -- COMMAND…: runs the command with standard error on a pseudo-terminal and prints what came there."""
import os
import pty
import sys

split = sys.argv.index("--")
child, terminal = pty.fork()
if child == 0:
    os.environ.update(word.split("=", 1) for word in sys.argv[1:split])
    os.execv(sys.argv[split + 1], sys.argv[split + 1:])
text = b""
while True:
    try:
        chunk = os.read(terminal, 4096)
    except OSError:
        break
    if not chunk:
        break
    text += chunk
os.waitpid(child, 0)
print(text.decode().replace("\x1b", "<ESC>").replace("\r\n", "\n"), end="")
