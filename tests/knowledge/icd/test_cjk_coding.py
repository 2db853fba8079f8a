"""Chinese and Japanese code lists given as CSV, in our own words."""

import pytest
from wardround.knowledge.icd import IcdCascade, Stage, load_code_system

ZH = """I10.x00,原发性高血压
I11.900,高血压性心脏病
I21.900,急性心肌梗死
I25.100,冠状动脉粥样硬化性心脏病
I48.x00,心房颤动
I50.900,心力衰竭
I63.900,脑梗死
I61.900,脑内出血
E05.900,甲状腺功能亢进症
E03.900,甲状腺功能减退症
E10.900,1型糖尿病不伴并发症
E11.900,2型糖尿病不伴并发症
E11.200,2型糖尿病伴肾的并发症
J20.900,急性支气管炎
J42.x00,慢性支气管炎
J44.900,慢性阻塞性肺疾病
J18.900,肺炎
K35.900,急性阑尾炎
K36.x00,慢性阑尾炎
C16.900,胃恶性肿瘤
D13.100,胃良性肿瘤
C34.900,肺恶性肿瘤
N18.900,慢性肾衰竭
N17.900,急性肾衰竭
S42.000x001,左锁骨骨折
S42.000x002,右锁骨骨折
K80.200,胆囊结石不伴胆囊炎
K80.100,胆囊结石伴胆囊炎
M06.900,类风湿性关节炎
H25.900,老年性白内障
H52.100,近视
H52.000,远视
B18.100,慢性乙型病毒性肝炎
B18.200,慢性丙型病毒性肝炎
I84.900,痔
"""
JA = """I10,本態性高血圧（症）
I21.9,急性心筋梗塞，詳細不明
I63.9,脳梗塞，詳細不明
E05.9,甲状腺中毒症，甲状腺機能亢進症
E03.9,甲状腺機能低下症，詳細不明
E10.9,１型糖尿病、合併症を伴わないもの
E11.9,２型糖尿病、合併症を伴わないもの
J20.9,急性気管支炎，詳細不明
J42,詳細不明の慢性気管支炎
J45.9,喘息，詳細不明
K35.9,急性虫垂炎，詳細不明
C16.9,胃の悪性新生物，部位不明
D13.1,胃の良性新生物
B01.9,合併症を伴わない水痘
B26.9,合併症を伴わないムンプス（流行性耳下腺炎）
M81.9,骨粗鬆症，詳細不明
H52.1,近視
H52.0,遠視
"""


@pytest.fixture(scope="module")
def zh(tmp_path_factory):
    path = tmp_path_factory.mktemp("zh") / "zh.csv"
    path.write_text("编码,名称\n" + ZH, encoding="gb18030")
    return IcdCascade(load_code_system(path))


@pytest.fixture(scope="module")
def ja(tmp_path_factory):
    path = tmp_path_factory.mktemp("ja") / "ja.csv"
    path.write_text("コード,病名\n" + JA, encoding="cp932")
    return IcdCascade(load_code_system(path))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("高血压病", "I10.x00"),
        ("1.冠心病", "I25.100"),
        ("房颤", "I48.x00"),
        ("心衰", "I50.900"),
        ("甲亢", "E05.900"),
        ("甲减", "E03.900"),
        ("二型糖尿病", "E11.900"),
        ("Ⅱ型糖尿病", "E11.900"),
        ("2型糖尿病", "E11.900"),
        ("I型糖尿病", "E10.900"),
        ("慢阻肺", "J44.900"),
        ("胃癌？", "C16.900"),
        ("肺Ca", "C34.900"),
        ("胃良性瘤", "D13.100"),
        ("左侧锁骨骨折", "S42.000x001"),
        ("锁骨骨折（右侧）", "S42.000x002"),
        ("右侧锁骨骨折", "S42.000x002"),
        ("胆囊结石伴有胆囊炎", "K80.100"),
        ("胆囊结石不伴有胆囊炎", "K80.200"),
        ("慢性乙肝", "B18.100"),
        ("近视眼", "H52.100"),
        ("类风湿关节炎", "M06.900"),
        ("急性肾功能衰竭", "N17.900"),
        ("急性闌尾炎", "K35.900"),
        ("痔疮", "I84.900"),
    ],
)
def test_chinese_names_find_their_code(zh, text, code):
    assert zh.map(text).code == code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("高血圧症", "I10"),
        ("脳梗塞", "I63.9"),
        ("急性心筋こうそく", "I21.9"),
        ("甲状腺機能低下症", "E03.9"),
        ("2型糖尿病", "E11.9"),
        ("２型糖尿病", "E11.9"),
        ("Ⅱ型糖尿病", "E11.9"),
        ("胃がん", "C16.9"),
        ("胃癌の疑い", "C16.9"),
        ("気管支ぜんそく", "J45.9"),
        ("急性虫垂炎", "K35.9"),
        ("水ぼうそう", "B01.9"),
        ("骨粗しょう症", "M81.9"),
        ("慢性気管支炎", "J42"),
        ("遠視", "H52.0"),
    ],
)
def test_japanese_names_find_their_code(ja, text, code):
    assert ja.map(text).code == code


@pytest.mark.parametrize(
    ("one", "other"),
    [("甲状腺功能亢进", "甲状腺功能减退"), ("急性支气管炎", "慢性支气管炎"), ("左锁骨骨折", "右锁骨骨折"),
     ("1型糖尿病", "2型糖尿病"), ("胃恶性肿瘤", "胃良性肿瘤"), ("近视", "远视")],
)  # fmt: skip
def test_chinese_opposites_are_never_coded_alike(zh, one, other):
    first, second = zh.map(one), zh.map(other)
    assert None not in (first.code, second.code)
    assert first.code != second.code


@pytest.mark.parametrize(
    "text", ["糖尿病家族史", "急性胰腺炎", "既往阑尾炎", "无肺炎", "慢性胃病", "否认高血压"]
)
def test_no_chinese_code_without_a_shared_name_or_for_what_is_not_there(zh, text):
    assert zh.map(text).code is None


def test_what_the_list_lacks_is_unmapped_with_candidates(zh):
    match = zh.map("妊娠剧吐")
    assert match.stage is Stage.UNMAPPED
    assert match.code is None
