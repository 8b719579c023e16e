"""Examples of `likeminds.report.page`."""

from likeminds.report.page import ReportTable


def test_report_table():
    assert ReportTable(["who", "AUC"], [["ann", "0.91"], ["bob", ""]]).kinds == [None, "number"]


def test_report_table_filled():
    assert ReportTable.filled(
        ["who", "AUC", "K"], [["ann", "0.91", ""], ["bob", "", ""]]
    ).columns == ["who", "AUC"]
