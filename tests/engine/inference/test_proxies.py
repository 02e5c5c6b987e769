"""Tests of which proxy the environment names for an address, in engine and client alike."""

import httpx
import pytest

from engine.inference import connecting, proxies
from engine.resources.loopback import except_loopback
from webapp.client import connecting as of_client
from webapp.client import proxies as proxies_of_client

BOTH = pytest.mark.parametrize("module", [proxies, proxies_of_client], ids=["engine", "client"])
EXCEPTED = [
    ("https://elm.example", "*", True),
    ("https://elm.example", "elm.example", True),
    ("https://a.elm.example", "elm.example", True),
    ("https://a.elm.example", ".elm.example", True),
    ("https://a.elm.example", "*.elm.example", True),
    ("https://ELM.example", "Elm.Example", True),
    ("https://belm.example", "elm.example", False),
    ("https://elm.example", "oak.example, elm.example", True),
    ("https://elm.example", "oak.example elm.example", True),
    ("https://elm.example", " , ,", False),
    ("https://elm.example", "elm.example:443", True),
    ("https://elm.example:8443", "elm.example:443", False),
    ("http://10.1.2.3", "10.1.2.3", True),
    ("http://10.1.2.3", "10.0.0.0/8", True),
    ("http://11.1.2.3", "10.0.0.0/8", False),
    ("http://[fd00::1]", "fd00::1", True),
    ("http://[fd00::1]", "[fd00::1]", True),
    ("http://[fd00::1]:80", "[fd00::1]:80", True),
    ("http://[fd00::1]:81", "[fd00::1]:80", False),
    ("http://[fd00::1]", "fd00::/8", True),
    ("http://[fe00::1]", "fd00::/8", False),
    ("https://elm.example", "10.0.0.0/8,[::1],fd00::/8", False),
]


@BOTH
@pytest.mark.parametrize(("address", "no_proxy", "is_one"), EXCEPTED)
def test_every_form_of_no_proxy(module, address, no_proxy, is_one):
    assert module.is_excepted(address, no_proxy) is is_one
    named = {"all": "http://proxy.example:3128", "no": no_proxy}
    assert module.proxy_for(address, named) == (None if is_one else named["all"])


@BOTH
@pytest.mark.parametrize("case", [str.lower, str.upper])
@pytest.mark.parametrize("name", ["http_proxy", "https_proxy", "all_proxy"])
def test_a_proxy_in_either_case_is_taken_and_never_for_this_machine(
    monkeypatch, module, name, case
):
    for other in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(other, raising=False)
        monkeypatch.delenv(other.upper(), raising=False)
    monkeypatch.setenv(case(name), "10.9.8.7:3128")
    scheme = "https" if name == "https_proxy" else "http"
    assert module.proxy_for(f"{scheme}://elm.example") == "http://10.9.8.7:3128"
    for near in ("localhost", "127.0.0.1", "127.9.9.9", "[::1]", "grove.localhost"):
        assert module.proxy_for(f"{scheme}://{near}:8000") is None
        assert module.is_loopback(f"{scheme}://{near}:8000")


@pytest.mark.parametrize("no_proxy", ["[::1]", "fd00::/8", "[fd00::1]:80", "10.0.0.0/8,::1"])
def test_a_client_is_made_whatever_no_proxy_holds(monkeypatch, no_proxy):
    monkeypatch.setenv("NO_PROXY", no_proxy)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    connecting.connected(httpx.Client, "http://elm.example").close()
    of_client.connected("http://elm.example").close()


@pytest.mark.parametrize("variable", ["ALL_PROXY", "all_proxy", "HTTPS_PROXY", "https_proxy"])
def test_socks_is_refused_with_the_remedy_in_either_case(monkeypatch, variable):
    monkeypatch.setenv(variable, "socks5://127.0.0.1:9")
    for connected in (
        lambda: connecting.connected(httpx.Client, "https://elm.example"),
        lambda: of_client.connected("https://elm.example"),
    ):
        with pytest.raises(ValueError, match="for SOCKS: pip install socksio"):
            connected()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, None),
        ({"no_proxy": "elm.example"}, None),
        ({"HTTP_PROXY": "p"}, "localhost,127.0.0.1,::1"),
        (
            {"all_proxy": "p", "NO_PROXY": "a.example, [::1]:80"},
            "a.example,::1,localhost,127.0.0.1",
        ),
        ({"https_proxy": "p", "no_proxy": "*"}, "*"),
    ],
)
def test_libraries_that_read_the_environment_leave_this_machine_out(given, expected):
    environment = dict(given)
    except_loopback(environment)
    if expected is None:
        assert environment == given
    else:
        assert environment["no_proxy"] == expected
