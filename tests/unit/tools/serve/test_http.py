from __future__ import annotations

import socket

from devall.tools.serve.http import listen


def test_answers_do_not_wait_for_the_acknowledgement_of_what_was_sent_before():
    with (
        listen("127.0.0.1", 0) as opened,
        socket.create_connection(opened.getsockname()),
    ):
        accepted, _ = opened.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
