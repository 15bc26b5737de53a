"""Tokens that no page and no figure may take for anything but text."""

HOSTILE = [
    "</script><img src=x onerror=document.title='PWNED'>",
    "<svg onload=document.title='PWNED'>",
    "\"><script>document.title='PWNED'</script>",
    "'); document.title='PWNED'; ('",
    "<!-- <script>",
    r"$\frac$",
    "\u202eright to left override",
    "\u2028\u2029\u0000",
    "&lt;b&gt;",
    "\ud800",
    "x" * 10_000,
    "",
]
