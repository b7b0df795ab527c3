"""The table of words holds what the API document says of each definition and field."""

from podyard.objects import api_types, api_words
from podyard.objects.api_words import FieldWords

TABLE = api_words.table()
TYPES = api_types.table()


def test_its_origin_is_said():
    assert (TABLE.origin.module, TABLE.origin.version) == (TYPES.origin.module, TYPES.origin.version)
    assert TABLE.origin.file == "pkg/generated/openapi/zz_generated.openapi.go"
    assert len(TABLE.origin.sha256) == 64


def test_it_is_about_the_definitions_of_the_table_of_types():
    assert TABLE.definitions.keys() == TYPES.definitions.keys()
    for name, words in TABLE.definitions.items():
        assert words.fields.keys() == TYPES.definitions[name].fields.keys(), name


def test_all_but_a_few_are_described():
    fields = [field for words in TABLE.definitions.values() for field in words.fields.values()]
    assert sum(not words.description for words in TABLE.definitions.values()) == 1
    assert sum(not field.description for field in fields) == 50


def test_texts_are_told_of_fields_that_are_texts_or_hold_them():
    with_texts = 0
    for name, words in TABLE.definitions.items():
        for key, field in words.fields.items():
            type_ = TYPES.definitions[name].fields[key].type
            if field.texts:
                assert type_ == "string", (name, key)
                with_texts += 1
            if field.item_texts:
                assert type_ in ("[]string", "map[string]string"), (name, key)
    assert with_texts == 111


def test_words_of_a_field():
    assert TABLE.definitions["api.core.v1.ServicePort"].fields["appProtocol"].texts == ()
    assert TABLE.definitions["api.core.v1.PodSpec"].fields["restartPolicy"].texts == ("Always", "Never", "OnFailure")
    assert TABLE.definitions["api.core.v1.ContainerPort"].fields["hostIP"] == FieldWords(
        "What host IP to bind the external port to."
    )
