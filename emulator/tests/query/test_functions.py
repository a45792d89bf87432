"""The built-in functions, with the examples of Microsoft's reference."""

import math
import re

import pytest

from cosmos_emulator.query import QueryError

STRINGS = [
    ("CONCAT('a', 'b', 'c')", "abc"),
    ("CONCAT('a', 1)", "undefined"),
    ("'a' || 'b' || 'c'", "abc"),
    ("CONTAINS('AdventureWorks', 'Works')", True),
    ("CONTAINS('AdventureWorks', 'works')", False),
    ("CONTAINS('AdventureWorks', 'works', true)", True),
    ("CONTAINS_ANY_CI('AdventureWorks', 'x', 'WORKS')", True),
    ("CONTAINS_ALL_CS('AdventureWorks', 'Works', 'adv')", False),
    ("ENDSWITH('AdventureWorks', 'WORKS', true)", True),
    ("STARTSWITH('AdventureWorks', 'adv')", False),
    ("STRINGEQUALS('a', 'A', true)", True),
    ("INDEX_OF('AdventureWorks', 'Works')", 9),
    ("INDEX_OF('AdventureWorks', 'Adventure', 5)", -1),
    ("LASTINDEXOF('abcabc', 'b')", 4),
    ("LASTINDEXOF('abcabc', 'b', 3)", 1),
    ("LEFT('AdventureWorks', 9)", "Adventure"),
    ("LEFT('Adventure', -1)", ""),
    ("RIGHT('AdventureWorks', 5)", "Works"),
    ("RIGHT('Works', 99)", "Works"),
    ("LENGTH('Adventure')", 9),
    ("LENGTH(5)", "undefined"),
    ("LOWER('ADVENTURE')", "adventure"),
    ("UPPER('adventure')", "ADVENTURE"),
    ("LTRIM('  a ')", "a "),
    ("LTRIM('AdventureWorks', 'Adventure')", "Works"),
    ("RTRIM(' a  ')", " a"),
    ("TRIM('-_-Works-_-', '-_')", "Works"),
    ("RegexMatch('abcd', 'ABC')", False),
    ("RegexMatch('abcd', 'aB c', 'ix')", True),
    ("RegexMatch('abcd', '(')", "undefined"),
    ("REPLACE('road bike', 'road', 'mountain')", "mountain bike"),
    ("REPLICATE('ab', 3)", "ababab"),
    ("REPLICATE('ab', 5001)", "undefined"),
    ("REVERSE('abc')", "cba"),
    ("SUBSTRING('AdventureWorks', 9, 2)", "Wo"),
    ("SUBSTRING('abc', 1, 0)", ""),
    ("StringJoin(['a', 'b'], ', ')", "a, b"),
    ("StringSplit('xenmoun mountain bike', 'moun')", ["xen", " ", "tain bike"]),
    ("StringSplit('Helmet', '')", ["Helmet"]),
    ("StringToArray('[ 1, {\"a\": null} ]')", [1, {"a": None}]),
    ("StringToArray(\"[ 'a' ]\")", "undefined"),
    ("StringToBoolean('  false  ')", False),
    ("StringToBoolean('yes')", "undefined"),
    ("StringToNull('null')", None),
    ("StringToNumber('   60   ')", 60),
    ("StringToNumber('NaN')", "undefined"),
    ("StringToObject('{\"a\": 1}')", {"a": 1}),
    ("ToString(125)", "125"),
    ("ToString(0.1234)", "0.1234"),
    ("ToString([1, 2, 3])", "[1,2,3]"),
    ("ToString({a: 'é'})", '{"a":"é"}'),
    ("ToString('Hello')", "Hello"),
    ("ToString(undefined)", "undefined"),
]

ARRAYS = [
    ("ARRAY_CONCAT([1], [2], [3])", [1, 2, 3]),
    ("ARRAY_CONTAINS(['coats', 'jackets'], 'coats')", True),
    ("ARRAY_CONTAINS([{a: 1, b: 2}], {a: 1})", False),
    ("ARRAY_CONTAINS([{a: 1, b: 2}], {a: 1}, true)", True),
    ("ARRAY_CONTAINS([1], true)", False),
    ("ARRAY_CONTAINS([1], undefined)", False),
    ("ARRAY_CONTAINS('abc', 'a')", "undefined"),
    ("ARRAY_CONTAINS_ANY([1, 2], 3, 2)", True),
    ("ARRAY_CONTAINS_ALL([1, 2], 3, 2)", False),
    ("ARRAY_LENGTH([1, 2])", 2),
    ("ARRAY_SLICE([70, 86, 92], -2)", [86, 92]),
    ("ARRAY_SLICE([70, 86, 92], -2, 1)", [86]),
    ("ARRAY_SLICE([70, 86, 92], 1, 99)", [86, 92]),
    ("ARRAY_AVG([1, 2, 3, 4])", 2.5),
    ("ARRAY_AVG([1, 'a'])", "undefined"),
    ("ARRAY_SUM([1, -2.5])", -1.5),
    ("ARRAY_MEDIAN([1, -2.7, 3, -4, undefined])", -0.8500000000000001),
    ("ARRAY_MAX([12, 'abc', true, false, null, undefined])", "abc"),
    ("ARRAY_MIN([12, 'abc', true, false, null, undefined])", None),
    ("CHOOSE(2, 'a', 'b')", "b"),
    ("CHOOSE(0, 'a', 'b')", "undefined"),
    ("ObjectToArray({a: '1', b: '2'})", [{"k": "a", "v": "1"}, {"k": "b", "v": "2"}]),
    ("ObjectToArray({a: 1}, 'name', 'n')", [{"name": "a", "n": 1}]),
    ("SetIntersect([1, 2, 'A', 'B'], ['A', 1])", ["A", 1]),
    ("SetIntersect([1, 2], [1, 1])", [1]),
    ("SetUnion([1, 2, 1], [2, 3])", [1, 2, 3]),
    ("SetDifference([1, 2, 2], [1])", [2]),
    ("SetEqual([1, 2, 2], [2, 1])", True),
]

MATHS = [
    ("ABS(-3.5)", 3.5),
    ("CEILING(-1.5)", -1),
    ("FLOOR(-1.5)", -2),
    ("ROUND(2.5)", 3),
    ("ROUND(-2.5)", -3),
    ("TRUNC(-2.7)", -2),
    ("SIGN(-7)", -1),
    ("SQRT(9)", 3),
    ("SQRT(-1)", "undefined"),
    ("SQUARE(3)", 9),
    ("POWER(2, 10)", 1024),
    ("POWER(0, -1)", "undefined"),
    ("EXP(0)", 1),
    ("LOG(8, 2)", 3),
    ("LOG10(1000)", 3),
    ("LOG(0)", "undefined"),
    ("ACOS(2)", "undefined"),
    ("DEGREES(PI())", 180),
    ("RADIANS(180)", math.pi),
    ("ATN2(1, 1)", math.pi / 4),
    ("COT(1)", 1 / math.tan(1)),
    ("IntAdd(1, 2)", 3),
    ("IntDiv(10, -2)", -5),
    ("IntDiv(10, 0)", "undefined"),
    ("IntDiv(10, 0.1)", "undefined"),
    ("IntMod(-7, 3)", -1),
    ("IntMul(3, 4)", 12),
    ("IntBitNot(5)", -6),
    ("IntBitLeftShift(16, 4)", 256),
    ("IntBitRightShift(16, 4)", 1),
    ("IntBitXor(5, 1)", 4),
    ("NumberBin(37.752, 10)", 30),
    ("NumberBin(37.752, 0.01)", 37.75),
    ("NumberBin(37.752, 0)", "undefined"),
    ("ABS('x')", "undefined"),
]

DATES = [
    ("DateTimeAdd('mm', 1, '2020-01-31T00:00:00.0000000')", "2020-02-29T00:00:00.0000000Z"),
    ("DateTimeAdd('yyyy', -1, '2020-07-03T00:00:00.0000000Z')", "2019-07-03T00:00:00.0000000Z"),
    ("DateTimeAdd('ss', 5 * -5, '2020-07-03T00:00:00')", "2020-07-02T23:59:35.0000000Z"),
    ("DateTimeAdd('ns', 100, '2020-07-03T00:00:00')", "2020-07-03T00:00:00.0000001Z"),
    ("DateTimeAdd('eon', 1, '2020-07-03T00:00:00')", "undefined"),
    ("DateTimeAdd('dd', 1, 'tomorrow')", "undefined"),
    ("DateTimeAdd('yyyy', 9000, '2020-07-03T00:00:00')", "undefined"),
    ("DateTimeBin('2021-01-08T18:35:00.0000000', 'hh', 5)", "2021-01-08T15:00:00.0000000Z"),
    ("DateTimeBin('2021-01-08T18:35:00.0000000', 'dd', 7)", "2021-01-07T00:00:00.0000000Z"),
    (
        "DateTimeBin('2021-01-08T18:35:00', 'dd', 7, '1601-01-01T00:00:00.0000000')",
        "2021-01-04T00:00:00.0000000Z",
    ),
    ("DateTimeBin('2021-05-08T18:35:00', 'mm', 3)", "2021-04-01T00:00:00.0000000Z"),
    ("DateTimeDiff('yyyy', '2019-02-04T16:00:00', '2018-03-05T05:00:00')", -1),
    ("DateTimeDiff('mm', '2018-03-05T05:00:00', '2019-02-04T16:00:00')", 11),
    ("DateTimeDiff('hh', '2018-03-05T05:00:00', '2019-02-04T16:00:00')", 8075),
    ("DateTimeDiff('ss', '2019-02-04T16:00:00', '2018-03-05T05:00:00')", -29070000),
    ("DateTimeFromParts(2017, 4, 20, 13, 15, 20, 3456789)", "2017-04-20T13:15:20.3456789Z"),
    ("DateTimeFromParts(2017, 4, 31)", "undefined"),
    ("DateTimePart('mcs', '2016-05-29T08:30:00.1301617')", 130161),
    ("DateTimePart('mm', '2016-05-29T08:30:00.1301617')", 5),
    ("YEAR('2016-05-29T08:30:00')", 2016),
    ("DateTimeToTicks('2020-01-02T03:04:05.6789123Z')", 15779342456789124),
    ("DateTimeToTimestamp('2020-07-09T23:20:13.4575530Z')", 1594336813457),
    ("TicksToDateTime(15943368134575530)", "2020-07-09T23:20:13.4575530Z"),
    ("TimestampToDateTime(1594227912345)", "2020-07-08T17:05:12.3450000Z"),
    ("DateTimeFormat('2024-10-10 14:40:20', 'yyyy-MM-dd [HH:mm:ss]')", "2024-10-10 [14:40:20]"),
    (
        r"DateTimeFormat('2024-10-10 14:40:20', 'To\\da\\y i\\s: yyyy-MM-ddTHH:mm:ss.FFF')",
        "Today is: 2024-10-10T14:40:20.",
    ),
    ("IS_DATETIME('2024-10-10T14:40:20Z')", True),
    ("IS_DATETIME('2024-13-10')", False),
    ("GetCurrentTicksStatic() = GetCurrentTicks()", True),
    ("AGO('dd', 1) < NOW()", True),
    ("DateTimeToTimestamp(GetCurrentDateTime()) = GetCurrentTimestamp()", True),
]

TYPES = [
    ("IS_ARRAY([])", True),
    ("IS_BOOL(1)", False),
    ("IS_DEFINED(undefined)", False),
    ("IS_DEFINED(null)", True),
    ("IS_FINITE_NUMBER(1.5)", True),
    ("IS_INTEGER(-9223372036854775808)", True),
    ("IS_INTEGER(18446744073709551615)", False),
    ("IS_INTEGER(3454.123)", False),
    ("IS_NULL(undefined)", False),
    ("IS_NUMBER(true)", False),
    ("IS_OBJECT({})", True),
    ("IS_PRIMITIVE(null)", True),
    ("IS_PRIMITIVE([])", False),
    ("IS_STRING('')", True),
    ("IIF(true, 1, 2)", 1),
    ("IIF('true', 1, 2)", 2),
    ("IIF(undefined, 1, 2)", 2),
]

VECTORS = [
    ("VectorDistance([1, 0], [0, 1])", 0),
    ("VectorDistance([3, 4], [6, 8])", 1),
    ("VectorDistance([1, 2], [3, 4], true, {distanceFunction: 'DotProduct'})", 11),
    ("VectorDistance([0, 0], [3, 4], false, {distanceFunction: 'euclidean'})", 5),
    ("VectorDistance([1], [1, 2])", "undefined"),
    ("FullTextContains('The red Bicycle.', 'bicycle')", True),
    ("FullTextContains('The red Bicycle.', 'red bicycle')", True),
    ("FullTextContains('The red Bicycle.', 'cycle')", False),
    ("FullTextContains('Two red bicycles', 'bicycle')", True),
    ("FullTextContains('She was riding', 'ride')", True),
    ("FullTextContains('The red Bicycle.', 'the')", False),
    ("FullTextContains('the President of the United States', 'president united state')", True),
    ("FullTextContains('1,977 people', '1,977')", True),
    ("FullTextContains('1,977 people', '977')", False),
    ("FullTextContainsAll('The red bicycle', 'red', 'blue')", False),
    ("FullTextContainsAny('The red bicycle', 'red', 'blue')", True),
]

OPERATORS = [
    ("1 + 2 * 3", 7),
    ("7 % 4", 3),
    ("-7 % 4", -3),
    ("1 / 0 > 1", True),
    ("9007199254740993 + 1", 9007199254740994),
    ("9223372036854775807 + 1", 9223372036854775808),
    ("0.1 + 0.2", 0.30000000000000004),
    ("'a' + 1", "undefined"),
    ("5 & 3 | 8", 9),
    ("~5", -6),
    ("1 << 3", 8),
    ("-1 >>> 28", 15),
    ("-8 >> 1", -4),
    ("0xFF", 255),
    ("undefined ?? null ?? 1", None),
    ("true ? 'yes' : 'no'", "yes"),
    ("1 ? 'yes' : 'no'", "no"),
    ("false AND undefined", False),
    ("true AND undefined", "undefined"),
    ("true OR undefined", True),
    ("NOT undefined", "undefined"),
    ("1 = '1'", False),
    ("1 != '1'", True),
    ("1 < '1'", "undefined"),
    ("null = null", True),
    ("null <= null", True),
    ("null < 1", "undefined"),
    ("false < true", True),
    ("[1] < [2]", "undefined"),
    ("[1, {a: 2}] = [1, {a: 2}]", True),
    ("1 = true", False),
    ("1 IN (true, 1)", True),
    ("undefined IN (1)", "undefined"),
    ("2 BETWEEN 1 AND 3", True),
    ("'2' BETWEEN 1 AND 3", "undefined"),
    ("'100%' LIKE '100[%]'", True),
    ("'20%' LIKE '%20^%%' ESCAPE '^'", True),
    ("'abc' LIKE 'a[b-d]c'", True),
    ("'abc' LIKE 'a[^b-d]c'", False),
    ("'a\\nb' LIKE 'a%b'", True),
    ("5 LIKE '5'", "undefined"),
    ("'\\u0041\\t\\'\\\\'", "A\t'\\"),
    ("{a: undefined, 'b': 1}", {"b": 1}),
    ("[1, undefined, 2]", [1, 2]),
    ("[1, 2][1]", 2),
    ("[1, 2][2]", "undefined"),
    ("{a: 1}['a']", 1),
    ("{a: {b: 1}}.a.b", 1),
]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [*STRINGS, *ARRAYS, *MATHS, *DATES, *TYPES, *VECTORS, *OPERATORS],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_an_expression_has_its_value(value, expression, expected):
    result = value(expression)
    if isinstance(expected, float):
        assert result == pytest.approx(expected, rel=1e-12)
    else:
        assert result == expected
        assert type(result) is type(expected)


def test_the_current_time_is_a_time(value):
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z", value("GetCurrentDateTime()"))


def test_rand_differs_from_row_to_row(table):
    container = table({}, {}, {})
    assert len(set(container.query("SELECT VALUE RAND() FROM c"))) == 3


@pytest.mark.parametrize(
    "call",
    ["ABS()", "ABS(1, 2)", "CONCAT('a')", "PI(1)", "SUBSTRING('a', 1)", "COUNT(1, 2)", "NOW(1)"],
)
def test_a_wrong_number_of_arguments_is_refused(value, call):
    with pytest.raises(QueryError, match="argument"):
        value(call)


HERE = "{type: 'Point', coordinates: [13.4, 52.5]}"
SQUARE = "{type: 'Polygon', coordinates: [[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]]}"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (f"ROUND(ST_DISTANCE({HERE}, {{type: 'Point', coordinates: [13.4, 53.5]}}))", 111195),
        (f"ST_DISTANCE({HERE}, {HERE})", 0),
        (f"ST_WITHIN({{type: 'Point', coordinates: [1, 1]}}, {SQUARE})", True),
        (f"ST_WITHIN({{type: 'Point', coordinates: [5, 1]}}, {SQUARE})", False),
        (f"ST_ISVALID({SQUARE})", True),
        ("ST_ISVALID({type: 'Point', coordinates: [13.4, 152.5]})", False),
        ("ST_ISVALID({type: 'Polygon', coordinates: [[[0, 0], [4, 0], [0, 0]]]})", False),
    ],
)
def test_points_and_polygons(table, expression, expected):
    assert table({}).query(f"SELECT VALUE {expression} FROM c") == [expected]


def test_shapes_that_are_none_have_no_distance(table):
    text = f"SELECT VALUE ST_DISTANCE(c.nowhere, {HERE}) FROM c"
    assert table({"nowhere": {"type": "Point"}}).query(text) == []


def test_the_items_of_a_computed_array_are_joined(table):
    container = table({"a": [1, 2], "b": [3]}, {"a": [4]})
    text = "SELECT VALUE x FROM c JOIN x IN ARRAY_CONCAT(c.a, c.b ?? [])"
    assert container.query(text) == [1, 2, 3, 4]
    assert container.query("SELECT VALUE x FROM c JOIN x IN SetUnion(c.a, [9])") == [1, 2, 9, 4, 9]
