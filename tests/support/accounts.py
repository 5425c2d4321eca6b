"""Accounts of a wiki, and what their forms need."""

from __future__ import annotations

import re

import requests

from tests.support.live_wiki import LiveWiki

PASSWORD = "secret-secret"
OPEN_TO_ACCOUNTS = {"READ_ACCESS": "APPROVED", "AUTO_APPROVAL": "True", "EMAIL_NEEDS_CONFIRMATION": "False"}
"""Settings of a wiki that whoever has opened an account can read."""
_TOKEN = re.compile(r'name="csrf[-_]token"[^>]*(?:value|content)="([^"]+)"')


def token(session: requests.Session, wiki: LiveWiki, page: str = "/-/about") -> str:
    """Return a session's CSRF token, which every page has."""
    answer = session.get(wiki.url + page)
    found = _TOKEN.search(answer.text)
    assert found, answer.text[:500]
    return found[1]


def send(session: requests.Session, wiki: LiveWiki, form: str, **values: str) -> requests.Response:
    """Fill in a form of the wiki, and send it."""
    answer = session.post(wiki.url + form, data={"csrf_token": token(session, wiki), **values})
    assert answer.status_code == 200
    return answer


def register(wiki: LiveWiki, name: str) -> requests.Session:
    """Open an account, log in, and return the session; the first account is the administrator's."""
    session, email = requests.Session(), f"{name}@example.org"
    send(session, wiki, "/-/register", email=email, name=name.title(), password1=PASSWORD, password2=PASSWORD)
    login = send(session, wiki, "/-/login", email=email, password=PASSWORD)
    assert "You logged in successfully" in login.text, login.text
    return session
