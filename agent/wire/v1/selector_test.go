package v1

import (
	"net/url"
	"reflect"
	"strings"
	"testing"
)

// TestSelectorFits checks which hosts a selector chooses.
func TestSelectorFits(t *testing.T) {
	t.Parallel()
	type host struct {
		name, role, environment string
		labels                  map[string]string
	}
	hosts := []host{
		{"h01", "till", "basel", map[string]string{"shop": "basel", "zone": "a"}},
		{"h02", "till", "default", map[string]string{"shop": "bern"}},
		{"h03", "", "default", map[string]string{"shop": ""}},
		{"h04", "", "", nil},
	}
	for query, want := range map[string]string{
		"":                                   "h01 h02 h03 h04 ",
		"host=h02&host=h04&host=h09":         "h02 h04 ",
		"label=shop=basel":                   "h01 ",
		"label=shop=basel,bern":              "h01 h02 ",
		"label=shop=":                        "h03 ",
		"label=shop=basel,bern&label=zone=a": "h01 ",
		"role=till&label=shop=bern":          "h02 ",
		"role=till&role=scale":               "h01 h02 ",
		"role=scale":                         "",
		"host=h01&role=till&label=shop=bern": "",
		"environment=basel":                  "h01 ",
		"environment=default":                "h02 h03 ",
		"environment=basel&environment=default&role=till": "h01 h02 ",
		"environment=bern": "",
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		s, wrong := ParseSelector(values["host"], values["label"], values["role"], values["environment"])
		if len(wrong) > 0 {
			t.Fatal(wrong)
		}
		m, got := s.Matcher(), ""
		for _, h := range hosts {
			if m.Fits(h.name, h.role, h.environment, h.labels) {
				got += h.name + " "
			}
		}
		if got != want || s.IsZero() != (query == "") {
			t.Errorf("%s chooses %s, want %s; zero: %v", query, got, want, s.IsZero())
		}
		again := url.Values{}
		if s.AddTo(again); again.Encode() != values.Encode() {
			t.Errorf("%s is written as %s", query, again.Encode())
		}
	}
}

// TestSelectorString checks that a selector is written as the flags that choose the same hosts.
func TestSelectorString(t *testing.T) {
	t.Parallel()
	s := Selector{Hosts: []string{"h1", "h2", "h3", "h4"}, Labels: map[string]string{"zone": "a", "shop": "basel,bern"}, Roles: []string{"till", "cash desk's"}, Environments: []string{"basel"}}
	if got, want := s.String(), `--host h1 --host h2 --host h3 --host … --label shop=basel,bern --label zone=a --role till --role 'cash desk'\''s' --environment basel`; got != want {
		t.Errorf("it is %s, want %s", got, want)
	}
}

// FuzzParseSelector checks that a selector which is accepted survives a query, and chooses a host
// that has all of it.
func FuzzParseSelector(f *testing.F) {
	f.Add("h01", "shop=basel,bern", "till", "basel")
	f.Add("h-1.example", "shop=", "cash desk's", "default")
	f.Add("", "=", " ", "")
	f.Add("h01", "a=,", "\n", "-")
	f.Fuzz(func(t *testing.T, host, label, role, environment string) {
		s, wrong := ParseSelector([]string{host}, []string{label}, []string{role}, []string{environment})
		if len(wrong) > 0 {
			return
		}
		query := url.Values{}
		s.AddTo(query)
		sent, err := url.ParseQuery(query.Encode())
		if err != nil {
			t.Fatal(err)
		}
		again, wrong := ParseSelector(sent["host"], sent["label"], sent["role"], sent["environment"])
		if len(wrong) > 0 || !reflect.DeepEqual(again, s) {
			t.Errorf("%+v is read back as %+v, %v", s, again, wrong)
		}
		labels := map[string]string{}
		for key, value := range s.Labels {
			labels[key], _, _ = strings.Cut(value, ",")
		}
		if !s.Matcher().Fits(host, role, environment, labels) {
			t.Errorf("%+v does not choose a host that has all of it", s)
		}
	})
}
