"""TLS for a board. A board has no certificates of authorities, so config.CA names one, in DER."""


def context_of(config):
    """None: no TLS. Otherwise a context that checks the service's certificate, and its name."""
    if config.CA is None:
        return None
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.verify_mode = ssl.CERT_REQUIRED
    with open(config.CA, "rb") as file:
        context.load_verify_locations(cadata=file.read())
    return context
