"""Names, numbers and texts that programs stumble over."""

from hypothesis import strategies as st

NAMES = (
    *("", " ", "0", "00", "007", "-1", "1e3", "1.0", "nan", "NaN", "NA", "null", "None", "inf"),
    *("True", "person", "item", "label", "everyone", "newcomer", "--help", "-", "=1+1", "@x"),
    *("\x1b[2J\x1b]0;owned\x07", "\x00", "a\rb", "a\nb", "a\tb", "\x9b1m", "\u202eevil", "\ufeff"),
    *("$\\frac{$", "$x$", "[/bold]", "[red]", "{", "{0}", "%s", "%n", "\\", '"', "'", "a,b", ";"),
    *("<script>alert(1)</script>", "&amp;", "../../etc/passwd", "/", "C:\\", "~", "*", "a" * 300),
    *(
        "\uff21\uff22",
        "é",
        "e\u0301",
        "ß",
        "İ",
        "你好",
        "👍🏽",
        "\U0001f9d1\u200d\U0001f4bb",
        "\u2028",
        "\u200b",
    ),
    *("12345678901234567890", "99999999999999999999999999", "0x10", "1_000", "١٢٣", "²"),
)
NUMBERS = (
    *(0.0, -0.0, 1.0, -1.0, 0.1, 3e6, 1e15, 2.0**53 + 1, 1e-12, 1e-160, 5e-324),
    *(1e12, 1e99, 1e101, 1e160, 1e200, 1e308, -1e308, float("inf"), float("-inf"), float("nan")),
)
WORDS = (
    *("", "-", "--", ".", "..", "/", "/dev/null", "nowhere.csv", "folder", "-1", "0", "1", "2"),
    *(
        "1e9",
        "nan",
        "inf",
        "0.5",
        "99999999999999999999",
        "x",
        "median",
        "True",
        "--help",
        "\x1b[2J",
    ),
    *(
        "sqlite:///no.db SELECT 1",
        "sqlite:///no.db",
        "duckdb:///no.db DROP TABLE x",
        "http://x/y.csv",
    ),
    *("postgresql://u:secret@127.0.0.1:1/db SELECT 1", "a" * 5000, "\udcff", "a\x00b", "*", "~"),
)

names = st.one_of(st.sampled_from(NAMES), st.text(max_size=8))
numbers = st.one_of(st.sampled_from(NUMBERS), st.floats(allow_subnormal=True), st.integers(-9, 9))
usual_numbers = st.floats(-3, 3)
words = st.one_of(st.sampled_from(WORDS), st.sampled_from(NAMES), st.text(max_size=6))
