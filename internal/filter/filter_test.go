package filter_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"palimpsest/internal/filter"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// row is a fact as the rows of stores give it.
func row(field string) any {
	switch field {
	case "type":
		return "fact"
	case "text":
		return "User likes Python for ML in the Straße"
	case "category":
		return "work"
	case "user":
		return "ann"
	case "subject":
		return ""
	case "confidence":
		return 0.75
	case "revision":
		return uint64(3)
	case "confirmed":
		return true
	case "created_at":
		return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	case "valid_until":
		return time.Time{}
	case "session":
		return []string{"s1", "s2"}
	case "metadata":
		var m map[string]any
		err := json.Unmarshal([]byte(`{"tag":"work","mem0.app_id":"desk","mem0.subject":"sums","n":3,"flag":true,"none":null,"day":"2026-03-01","list":["x","y",2],"empty":[],
			"deep":{"a":{"b":"yes"},"list":[{"k":1},{"k":2}]},"dot.ted":"d","":"blank key","":"blank"}`), &m)
		if err != nil {
			panic(err)
		}
		return m
	}
	return nil
}

func TestMatch(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{"field":"category","operator":"eq","value":"work"}`:                            true,
		`{"field":"category","operator":"eq","value":"Work"}`:                            false,
		`{"field":"category","operator":"ne","value":"home"}`:                            true,
		`{"field":"category","operator":"in","value":["home","work"]}`:                   true,
		`{"field":"category","operator":"in","value":[]}`:                                false,
		`{"field":"category","operator":"nin","value":[]}`:                               true,
		`{"field":"text","operator":"contains","value":"Python"}`:                        true,
		`{"field":"text","operator":"contains","value":"python"}`:                        false,
		`{"field":"text","operator":"icontains","value":"python"}`:                       true,
		`{"field":"content","operator":"icontains","value":"STRASSE"}`:                   true,
		`{"field":"confidence","operator":"gt","value":0.7}`:                             true,
		`{"field":"revision","operator":"lte","value":3}`:                                true,
		`{"field":"confirmed","operator":"eq","value":true}`:                             true,
		`{"field":"confirmed","operator":"ne","value":true}`:                             false,
		`{"field":"created_at","operator":"gte","value":"2026-03-01"}`:                   true,
		`{"field":"created_at","operator":"lt","value":"2026-03-01T13:00:00+01:00"}`:     false,
		`{"field":"created_at","operator":"lte","value":"2026-03-01T13:00:00+01:00"}`:    true,
		`{"field":"session","operator":"eq","value":"s2"}`:                               true,
		`{"field":"session_ids","operator":"ne","value":"s2"}`:                           false,
		`{"field":"subject","operator":"exists"}`:                                        false,
		`{"field":"subject","operator":"eq","value":""}`:                                 false,
		`{"field":"subject","operator":"ne","value":"x"}`:                                true,
		`{"field":"valid_until","operator":"lt","value":"2026-01-01"}`:                   false,
		`{"field":"kind","operator":"gt","value":"a"}`:                                   false,
		`{"NOT":{"field":"kind","operator":"gt","value":"a"}}`:                           true,
		`{"field":"metadata.tag","operator":"eq","value":"work"}`:                        true,
		`{"field":"metadata.n","operator":"gte","value":3}`:                              true,
		`{"field":"metadata.n","operator":"eq","value":"3"}`:                             false,
		`{"field":"metadata.n","operator":"ne","value":"3"}`:                             true,
		`{"field":"metadata.tag","operator":"gt","value":1}`:                             false,
		`{"field":"metadata.flag","operator":"eq","value":true}`:                         true,
		`{"field":"metadata.flag","operator":"eq","value":1}`:                            false,
		`{"field":"metadata.none","operator":"exists"}`:                                  false,
		`{"field":"metadata.empty","operator":"exists"}`:                                 false,
		`{"field":"metadata.deep","operator":"exists"}`:                                  true,
		`{"field":"metadata.deep","operator":"eq","value":"x"}`:                          false,
		`{"field":"metadata.day","operator":"eq","value":"2026-03-01T01:00:00+01:00"}`:   true,
		`{"field":"metadata.day","operator":"gt","value":"2026-02-28T23:59:59.999999Z"}`: true,
		`{"field":"metadata.tag","operator":"gt","value":"2026-03-01"}`:                  true,
		`{"field":"metadata.list","operator":"eq","value":2}`:                            true,
		`{"field":"metadata.list","operator":"in","value":["z","y"]}`:                    true,
		`{"field":"metadata.list","operator":"nin","value":["z","y"]}`:                   false,
		`{"field":"metadata.deep.a.b","operator":"eq","value":"yes"}`:                    true,
		`{"field":"metadata.deep.list.k","operator":"eq","value":2}`:                     true,
		`{"field":"metadata.dot.ted","operator":"eq","value":"d"}`:                       true,
		`{"AND":[]}`: true,
		`{"OR":[]}`:  false,
		`{"AND":[{"field":"type","operator":"eq","value":"fact"},{"NOT":{"field":"user","operator":"eq","value":"bob"}}]}`:                 true,
		`{"OR":[{"field":"type","operator":"eq","value":"episode"},{"field":"text","operator":"contains","value":"ML"}]}`:                  true,
		`{"AND":[{"field":"type","operator":"eq","value":"episode"},{"field":"text","operator":"contains","value":"ML"}]}`:                 false,
		`{"OR":[{"field":"metadata.tag","operator":"eq","value":"x"},{"NOT":{"field":"metadata.absent","operator":"eq","value":"work"}}]}`: true,
	} {
		e, err := filter.ParseJSON([]byte(text), filter.Memory)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := filter.Match(e, row); got != want {
			t.Errorf("%s: %v", text, got)
		}
		again, err := filter.ParseJSON(filter.JSON(e), filter.Memory)
		if err != nil || string(filter.JSON(again)) != string(filter.JSON(e)) {
			t.Errorf("%s: written as %s: %v", text, filter.JSON(e), err)
		}
	}
}

func TestMem0(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{}`:                                             true,
		`{"tag":"work"}`:                                 true,
		`{"tag":"home"}`:                                 false,
		`{"kind":"semantic"}`:                            false, // a key of the metadata
		`{"user_id":"ann"}`:                              true,
		`{"user_id":"*"}`:                                true,
		`{"run_id":"*","user_id":"ann"}`:                 true,
		`{"subject":"sums"}`:                             true,
		`{"metadata":{"subject":"sums"}}`:                true,
		`{"predicate":"*"}`:                              false,
		`{"expiration_date":{"lt":"2030-01-01"}}`:        false,
		`{"user_id":{"ne":"*"}}`:                         false,
		`{"user_id":{"in":["bob","ann"]}}`:               true,
		`{"user_id":["bob","ann"]}`:                      true,
		`{"app_id":"desk"}`:                              true,
		`{"app_id":{"nin":["desk"]}}`:                    false,
		`{"app_id":"*"}`:                                 true,
		`{"n":{"gt":1,"lt":4}}`:                          true,
		`{"n":{"gt":1,"lt":3}}`:                          false,
		`{"memory":{"icontains":"PYTHON"}}`:              true,
		`{"keywords":{"contains":"Python"}}`:             true,
		`{"categories":{"contains":"work"}}`:             true,
		`{"categories":{"in":["work"]}}`:                 true,
		`{"metadata":{"tag":"work","n":{"ne":4}}}`:       true,
		`{"metadata.tag":"work"}`:                        true,
		`{"created_at":{"gte":"2026-01-01"}}`:            true,
		`{"AND":[{"user_id":"ann"},{"tag":"work"}]}`:     true,
		`{"OR":[{"user_id":"bob"},{"tag":"work"}]}`:      true,
		`{"NOT":{"tag":"work"}}`:                         false,
		`{"NOT":[{"tag":"home"},{"n":4}]}`:               true,
		`{"NOT":[{"tag":"home"},{"n":3}]}`:               false,
		`{"user_id":"ann","NOT":[{"tag":"home"}]}`:       true,
		`{"field":"tag","operator":"eq","value":"work"}`: true,
		`{"AND":[{"field":"user_id","operator":"eq","value":"ann"},{"OR":[{"field":"memory","operator":"icontains","value":"python"}]}]}`: true,
		`{"field":"x"}`: false, // a key named field
	} {
		e, err := filter.ParseMem0([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := filter.Match(e, row); got != want {
			t.Errorf("%s: %v, read as %s", text, got, filter.JSON(e))
		}
	}
}

func TestWhere(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		``:                                                     true,
		`  `:                                                   true,
		`category = 'work'`:                                    true,
		`category='work'and user = 'ann'`:                      true,
		`category <> 'work'`:                                   false,
		`subject <> 'x'`:                                       true,
		`category IN ('home', 'work')`:                         true,
		`category NOT IN ('home', 'work')`:                     false,
		`confidence >= 0.75 AND revision < 4`:                  true,
		`confidence BETWEEN .5 AND 7.5e-1`:                     true,
		`NOT confidence BETWEEN 0.8 AND 1`:                     true,
		`confidence NOT BETWEEN 0 AND 1`:                       false,
		`confirmed = TRUE`:                                     true,
		`subject IS NULL`:                                      true,
		`subject IS NOT NULL`:                                  false,
		`text LIKE '%Python%'`:                                 true,
		`text LIKE '%python%'`:                                 false,
		`text ILIKE '%python%'`:                                true,
		`text NOT ILIKE '%python%'`:                            false,
		`metadata.tag = 'work'`:                                true,
		`metadata."dot.ted" = 'd'`:                             true,
		`metadata.deep.a.b = 'yes'`:                            true,
		`"category" = 'work'`:                                  true,
		`metadata.n = -3 OR metadata.n = +3`:                   true,
		`category = 'wo''rk'`:                                  false,
		`false or true and not false`:                          true,
		`(false or true) and false`:                            false,
		`((category = 'work'))`:                                true,
		`created_at > '2026-03-01'`:                            true,
		`category = 'x' OR category = 'work' AND user = 'bob'`: false,
	} {
		e, err := filter.ParseWhere(text, filter.Memory)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := filter.Match(e, row); got != want {
			t.Errorf("%s: %v, read as %s", text, got, filter.JSON(e))
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"NOT":`, filter.MaxDepth) + `{"AND":[]}` + strings.Repeat(`}`, filter.MaxDepth)
	wide := `{"AND":[` + strings.TrimSuffix(strings.Repeat(`{"AND":[]},`, filter.MaxNodes), ",") + `]}`
	list := strings.TrimSuffix(strings.Repeat(`1,`, filter.MaxValues+1), ",")
	for text, want := range map[string]string{
		`[]`:         "must be an object",
		`{}`:         "either field, operator and value, or one of AND, OR, NOT",
		`{"AND":{}}`: ".AND: must be an array",
		`{"NOT":[]}`: ".NOT: must be an object",
		`{"and":[]}`: `nearest known one is "AND"`,
		`{"AND":[{"AND":[]},{"field":"kid","operator":"eq","value":"x"}]}`:                         `.AND[1].field: unknown field "kid"; the nearest known one is "id"`,
		`{"field":"catgory","operator":"eq","value":"x"}`:                                          `the nearest known one is "category"`,
		`{"field":"category","operator":"eqs","value":"x"}`:                                        `.operator: unknown operator "eqs"; the nearest known one is "eq"`,
		`{"field":"category","operator":"eq"}`:                                                     ".value: is required",
		`{"field":"category","operator":"eq","value":null}`:                                        "null is no value",
		`{"field":"category","operator":"eq","value":1}`:                                           "category compares with a string",
		`{"field":"category","operator":"eq","value":["a"]}`:                                       "in takes several",
		`{"field":"category","operator":"in","value":"a"}`:                                         "in takes an array",
		`{"field":"category","operator":"in","value":["a",{}]}`:                                    "a value must be",
		`{"field":"category","operator":"exists","value":true}`:                                    "takes no value",
		`{"field":"category","oprator":"eq","value":"x"}`:                                          `nearest known one is "operator"`,
		`{"field":"confidence","operator":"contains","value":"x"}`:                                 "contains does not apply",
		`{"field":"confidence","operator":"gt","value":"x"}`:                                       "confidence compares with a number",
		`{"field":"confirmed","operator":"gt","value":true}`:                                       "no order",
		`{"field":"metadata.f","operator":"gt","value":true}`:                                      "does not take true or false",
		`{"field":"metadata.f","operator":"contains","value":1}`:                                   "takes a string",
		`{"field":"created_at","operator":"gt","value":"yesterday"}`:                               `"yesterday" is not`,
		`{"field":"metadata","operator":"eq","value":"x"}`:                                         "needs a key",
		`{"field":"metadata.","operator":"eq","value":"x"}`:                                        "names no key",
		`{"field":1,"operator":"eq","value":"x"}`:                                                  ".field: must be a string",
		`{"AND":[],"AND":[]}`:                                                                      "twice",
		`{"AND":[]} x`:                                                                             "",
		deep:                                                                                       "more than 16 levels",
		wide:                                                                                       "more than 256",
		`{"field":"metadata.n","operator":"in","value":[` + list + `]}`:                            "more than 1000 values",
		`{"field":"metadata` + strings.Repeat(".a", 17) + `","operator":"exists"}`:                 "keys deep",
		`{"field":"metadata.` + strings.Repeat("a", filter.MaxField) + `","operator":"exists"}`:    "name of a field",
		`{"field":"text","operator":"eq","value":"` + strings.Repeat("a", filter.MaxText+1) + `"}`: "bytes long",
	} {
		_, err := filter.ParseJSON([]byte(text), filter.Memory)
		refused(t, text, err, want)
	}
	for text, want := range map[string]string{
		`[]`:                    "must be an object",
		`{"a":{"b":1}}`:         `.a.b: unknown operator "b"`,
		`{"a":{}}`:              "names no operator",
		`{"metadata":1}`:        "must be an object of keys",
		`{"created_at":"soon"}`: "compares with a time",
		`{"OR":[{"a":null}]}`:   ".OR[0].a: null is no value",
	} {
		_, err := filter.ParseMem0([]byte(text))
		refused(t, text, err, want)
	}
	for text, want := range map[string]string{
		`catgory = 'x'`:                        `at character 1: unknown field "catgory"; the nearest known one is "category"`,
		`kind = 'a' AND rol = 'x'`:             `at character 16: unknown field "rol"; the nearest known one is "role"`,
		`kind`:                                 "at character 5: expected a comparison behind kind, found the end",
		`kind = `:                              "expected a string in single quotes",
		`kind = "a"`:                           `found "a"`,
		`kind = NULL`:                          "use IS NULL",
		`kind = role`:                          "found role",
		`'a' = kind`:                           "expected a column",
		`kind = 'a' kind = 'b'`:                "at character 12: expected AND, OR or the end",
		`(kind = 'a'`:                          "expected ), found the end",
		`kind = 'a`:                            "at character 8: a quote is not closed",
		`kind = 'a'; DROP TABLE x`:             "at character 11: unsupported character ';'",
		`kind = 'a' -- x`:                      "comments are not supported",
		`lower(kind) = 'a'`:                    "functions are not supported: lower(",
		`kind LIKE 'a%'`:                       "LIKE takes '%text%' alone",
		`kind IN ()`:                           "expected a string in single quotes",
		`kind IS 'a'`:                          "expected NULL",
		`kind NOT 'a'`:                         "expected IN, BETWEEN or LIKE",
		`confidence = 1e999`:                   "too large",
		`confidence = 1.2.3`:                   "no number",
		`"日本" = 'x' AND`:                       `at character 1: unknown field "日本"`,
		`kind = '日本' AND é = 1`:                "at character 17: unknown field",
		`SELECT = 'x'`:                         "expected a column, found SELECT",
		`kind = 'a' OR`:                        "expected a column, found the end",
		strings.Repeat("(", 1<<16):             "levels deep",
		strings.Repeat("NOT ", 1<<16) + "TRUE": "levels deep",
		strings.Repeat("kind = 'a' AND ", filter.MaxNodes) + "TRUE": "more than 256",
		"kind = '\xff'": "not valid UTF-8",
	} {
		_, err := filter.ParseWhere(text, filter.Memory)
		refused(t, text, err, want)
	}
}

func refused(t *testing.T, text string, err error, want string) {
	t.Helper()
	var e *filter.Error
	if !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
		t.Errorf("%.200s: %v, want %q", text, err, want)
	}
}
