"""E-mail, handed to a mail server by SMTP.

RFC 5321 has the codes of its answers: 4xx may pass, 5xx would be the same again. RFC 8314 has the
two ways to encrypt: STARTTLS on port 587, TLS from the first byte on port 465. A server that does
not offer what the settings ask for gets nothing.
"""

import smtplib
import ssl
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime, make_msgid

from ...config.settings import Email
from .service import Refusal, inert, shut_down, why, within
from .text_message import Message


def mail_of(message: Message, email: Email, now: datetime) -> EmailMessage:
    """The mail: plain text, and a subject in which no name is."""
    mail = EmailMessage()
    mail["Subject"] = message.heading
    mail["From"] = email.sender
    mail["To"] = ", ".join(email.recipients)
    mail["Date"] = format_datetime(now)
    mail["Message-ID"] = make_msgid(domain=email.sender.rpartition("@")[2])
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(_body(message))
    return mail


def mail_text(message: Message) -> str:
    """The mail as its reader sees it: the subject and the text."""
    return f"Subject: {message.heading}\n\n{_body(message)}".rstrip("\n")


def _body(message: Message) -> str:
    text = "".join(f"{inert(line)}\n" for line in message.lines)
    return text.encode(errors="replace").decode()


def send(mail: EmailMessage, email: Email, password: str, timeout_seconds: float) -> Refusal | None:
    """Hands the mail over once, within this time; None where the server took it for everybody."""
    connections: list[smtplib.SMTP] = []

    def work() -> Refusal | None:
        # The time of the whole comes first: smtplib takes a time-out for a lost connection.
        server = _connected(email, timeout_seconds + 1)
        connections.append(server)
        with server:
            return _hand_over(server, mail, email, password)

    try:
        return within(
            timeout_seconds, work, lambda: shut_down(connection.sock for connection in connections)
        )
    except smtplib.SMTPResponseException as error:
        return _refused(error.smtp_code)
    except smtplib.SMTPRecipientsRefused as error:
        return _refused(max(code for code, _ in error.recipients.values()))
    except smtplib.SMTPNotSupportedError:
        return Refusal("the mail server does not offer what the settings ask for (STARTTLS, login)")
    except smtplib.SMTPServerDisconnected:
        return Refusal("no answer: the mail server closed the connection", 0.0)
    except (OSError, ValueError) as error:
        return Refusal(f"no answer: {why(error, timeout_seconds)}", 0.0)


def _connected(email: Email, timeout_seconds: float) -> smtplib.SMTP:
    if email.security == "TLS":
        context = ssl.create_default_context()
        return smtplib.SMTP_SSL(email.host, email.port, timeout=timeout_seconds, context=context)
    return smtplib.SMTP(email.host, email.port, timeout=timeout_seconds)


def _hand_over(
    server: smtplib.SMTP, mail: EmailMessage, email: Email, password: str
) -> Refusal | None:
    if email.security == "STARTTLS":
        server.starttls(context=ssl.create_default_context())
    if email.user is not None:
        server.login(email.user, password)
    if refused := server.send_message(mail):
        # The others have it: another attempt would give it to them once more.
        return Refusal(f"the mail server refused {len(refused)} of the recipients")
    return None


def _refused(code: int) -> Refusal:
    reasons = {530: "it asks for a login", 535: "the user or the password is wrong"}
    reason = f": {reasons[code]}" if code in reasons else ""
    return Refusal(f"SMTP code {code}{reason}", 0.0 if 400 <= code < 500 else None)
