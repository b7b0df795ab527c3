"""What people are shown has no secret in it."""

import json

from podyard.runtime.hiding import HIDDEN, hidden

PLANTED = "hunter2-planted"


def test_whatever_is_called_a_secret_is_hidden():
    shown = hidden(
        {
            "password": PLANTED,
            "apiKey": PLANTED,
            "args": [{"authToken": PLANTED, "clientSecret": PLANTED, "Authorization": f"Bearer {PLANTED}"}],
            "tlsConfig": {"keyData": PLANTED, "certData": "public", "keyFile": "/etc/key.pem"},
        }
    )
    assert PLANTED not in json.dumps(shown)
    assert shown["tlsConfig"] == {"keyData": HIDDEN, "certData": "public", "keyFile": "/etc/key.pem"}


def test_passwords_in_addresses_are_hidden():
    shown = hidden({"urlPrefix": f"https://me:{PLANTED}@extender:8080/x", "servers": [f"nats://{PLANTED}@a:4222"]})
    assert shown == {"urlPrefix": "https://***@extender:8080/x", "servers": ["nats://***@a:4222"]}


def test_where_a_secret_is_is_no_secret():
    said = {
        "tokenAuthFile": "/etc/tokens.csv",
        "secrets_dir": "/etc/secrets",
        "credentials_file": "/etc/nats.creds",
        "authToken": {"secretReference": {"namespace": "monitoring", "name": "prometheus"}},
        "secretName": "prometheus",
        "password": "",
    }
    assert hidden(said) == said
