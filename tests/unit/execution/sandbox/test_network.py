"""No reference reaches the network, by whichever layer is there."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        yield server


def nobody_came(server: socket.socket) -> bool:
    try:
        server.accept()[0].close()
    except TimeoutError:
        return True
    return False


def connect(server: socket.socket) -> str:
    return f"""
    import socket
    socket.create_connection({server.getsockname()!r}, 2)
    print("reached")
    """


def test_tcp_is_cut_off(hostile, listener) -> None:
    outcome = hostile(connect(listener))
    assert outcome.exit_status == 1
    assert "Error" in outcome.stderr
    assert "reached" not in outcome.stdout
    assert nobody_came(listener)


def test_the_listener_is_reached_without_the_sandbox(free, listener) -> None:
    """The tests above can fail."""
    assert free(connect(listener)).stdout == "reached\n"
    assert not nobody_came(listener)


def test_udp_is_cut_off(hostile) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(0.1)
        script = f"""
        import socket
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.sendto(b"token", {server.getsockname()!r})
        """
        outcome = hostile(script)
        assert outcome.exit_status == 1
        with pytest.raises(TimeoutError):
            server.recv(10)


@pytest.mark.calls_are_filtered
@pytest.mark.parametrize("family", ["AF_INET6", "AF_NETLINK", "AF_PACKET", "AF_VSOCK"])
def test_other_families_have_no_socket(hostile, family) -> None:
    script = f"import socket; socket.socket(socket.{family}, socket.SOCK_RAW)"
    outcome = hostile(script)
    assert "PermissionError" in outcome.stderr


@pytest.mark.parametrize("abstract", [False, True])
def test_a_local_socket_is_out_of_reach(hostile, tmp_path, abstract) -> None:
    path = f"\0sandbox-{tmp_path.name}" if abstract else str(tmp_path / "listens")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        server.settimeout(0.1)
        outcome = hostile(
            f"import socket; socket.socket(socket.AF_UNIX).connect({path!r})"
        )
        assert outcome.exit_status == 1
        assert nobody_came(server)


def test_no_name_is_resolved(hostile) -> None:
    outcome = hostile("import socket; socket.getaddrinfo('example.org', 80)")
    assert outcome.exit_status == 1
    assert "gaierror" in outcome.stderr


def test_a_pair_of_sockets_still_works(hostile) -> None:
    outcome = hostile(
        """
        import socket
        one, other = socket.socketpair()
        one.send(b"x")
        print(other.recv(1))
        """
    )
    assert outcome.stdout == "b'x'\n"


@pytest.mark.calls_are_filtered
@pytest.mark.parametrize("kind", ["SOCK_DGRAM", "SOCK_RAW"])
def test_a_pair_that_could_be_sent_anywhere_is_refused(hostile, kind) -> None:
    script = f"import socket; socket.socketpair(type=socket.{kind})"
    assert "PermissionError" in hostile(script).stderr
