package main

import (
	"encoding/json"
	"testing"
)

// house is a repository of some packages.
var house = map[string]pkg{
	".":                 {Imports: []string{"provider"}, TestFiles: map[string]string{"rooms_test.go": ""}},
	"agent/base/text":   {TestFiles: map[string]string{"text_test.go": ""}},
	"agent/run":         {Imports: []string{"agent/base/text"}, TestFiles: map[string]string{"run_test.go": ""}},
	"agent/controller":  {Imports: []string{"agent/run"}, Tests: []string{"agent/testing/memory"}, TestFiles: map[string]string{"x_test.go": ""}},
	"agent/log/natsd":   {Imports: []string{"agent/base/text"}, TestFiles: map[string]string{"x_test.go": ""}},
	"agent/log/types":   {Imports: []string{"agent/base/text"}},
	"agent/testing/sim": {Tests: []string{"agent/controller"}, TestFiles: map[string]string{"sim_test.go": "func TestSimulation(t *testing.T) {\n"}},
	"agent/e2e": {Tests: []string{"agent/run"}, TestFiles: map[string]string{
		"guide_test.go": "func TestGuide(t *testing.T) {\n\tread(\"../../docs/guides/\" + name)\n",
		"join_test.go":  "func helper(t *testing.T) {\nfunc TestJoin(t *testing.T) {\n\tread(\"../../README.md\")\n",
	}},
	"provider": {TestFiles: map[string]string{"x_test.go": ""}},
}

func TestChoose(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		changed []string
		want    string
	}{
		"what all import": {
			[]string{"agent/base/text/text.go"},
			`{"Changed":["agent/base/text"],"Vet":["agent/base/text","agent/controller","agent/e2e","agent/log/natsd","agent/log/types","agent/run","agent/testing/sim"],"Lint":["agent/base/text"],"Test":["agent/base/text","agent/run"],"Slow":["agent/log/natsd"],"Some":null,"Tools":null,"Docs":false,"Simulate":true}`,
		},
		"only a test": {
			[]string{"agent/run/testdata/a/b.txt", "agent/run/run_test.go"},
			`{"Changed":["agent/run"],"Vet":["agent/run"],"Lint":["agent/run"],"Test":["agent/run"],"Slow":null,"Some":null,"Tools":null,"Docs":false,"Simulate":false}`,
		},
		"a test of the whole program": {
			[]string{"agent/e2e/join_test.go"},
			`{"Changed":["agent/e2e"],"Vet":["agent/e2e"],"Lint":["agent/e2e"],"Test":null,"Slow":null,"Some":[{"Folder":"agent/e2e","Tests":["TestJoin"]}],"Tools":null,"Docs":false,"Simulate":false}`,
		},
		"a guide": {
			[]string{"docs/guides/apt.md"},
			`{"Changed":null,"Vet":null,"Lint":null,"Test":null,"Slow":null,"Some":[{"Folder":"agent/e2e","Tests":["TestGuide"]}],"Tools":null,"Docs":true,"Simulate":false}`,
		},
		"documents and tools": {
			[]string{"README.md", "tools/check/main.go", "tools/go.sum", "nobody.txt"},
			`{"Changed":null,"Vet":null,"Lint":null,"Test":null,"Slow":null,"Some":[{"Folder":"agent/e2e","Tests":["TestJoin"]}],"Tools":["tools/check"],"Docs":false,"Simulate":false}`,
		},
		"slow itself": {
			[]string{"agent/log/natsd/natsd.go"},
			`{"Changed":["agent/log/natsd"],"Vet":["agent/log/natsd"],"Lint":["agent/log/natsd"],"Test":["agent/log/natsd"],"Slow":null,"Some":null,"Tools":null,"Docs":false,"Simulate":false}`,
		},
		"a package that is gone": {
			[]string{"agent/gone/gone.go"},
			`{"Changed":null,"Vet":null,"Lint":null,"Test":null,"Slow":null,"Some":null,"Tools":null,"Docs":false,"Simulate":false}`,
		},
		"a module": {
			[]string{"go.mod"},
			`{"Changed":null,"Vet":[".","agent/base/text","agent/controller","agent/e2e","agent/log/natsd","agent/log/types","agent/run","agent/testing/sim","provider"],"Lint":null,"Test":null,"Slow":null,"Some":null,"Tools":null,"Docs":false,"Simulate":true}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := json.Marshal(choose(house, c.changed))
			if err != nil || string(got) != c.want {
				t.Errorf("chosen are\n%s, want\n%s", got, c.want)
			}
		})
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	r, printed := newReport(), ""
	for _, line := range []string{
		`{"Action":"output","Package":"` + module + `/provider","Test":"TestA","Output":"    acctest.go:90: it needs Terraform\n"}`,
		`{"Action":"skip","Package":"` + module + `/provider","Test":"TestA"}`,
		`{"Action":"skip","Package":"` + module + `/provider","Test":"TestB/sub"}`,
		`{"Action":"output","Package":"` + module + `/provider","Test":"TestC","Output":"wrong\n"}`,
		`{"Action":"fail","Package":"` + module + `/provider","Test":"TestC"}`,
		`{"Action":"output","Package":"` + module + `/provider","Output":"FAIL\n"}`,
		`{"Action":"fail","Package":"` + module + `/provider","Elapsed":1.2}`,
		`{"Action":"pass","Package":"` + module + `","Elapsed":0.5}`,
		`a.go:1: it does not compile`,
	} {
		printed += r.add([]byte(line))
	}
	if want := "wrong\nFAIL\n    0.5s  .\na.go:1: it does not compile\n"; printed != want {
		t.Errorf("printed is %q, want %q", printed, want)
	}
	if got := r.skipped(); len(got) != 1 || got[0] != "1 test of provider: TestA (it needs Terraform)" {
		t.Errorf("skipped are %q", got)
	}
}
