package acctest

import (
	"encoding/json"
	"strings"
	"testing"
)

// Diagnostics are what the CLI's JSON tells of each resource, by its address.
func Diagnostics(t testing.TB, output string) map[string][]string {
	t.Helper()
	var report struct {
		Diagnostics []struct{ Address, Summary, Detail string }
	}
	if _, text, found := strings.Cut(output, "{"); !found || json.Unmarshal([]byte("{"+text), &report) != nil {
		t.Fatalf("the CLI printed no JSON: %s", output)
	}
	told := map[string][]string{}
	for _, d := range report.Diagnostics {
		told[d.Address] = append(told[d.Address], d.Summary+"\n"+d.Detail)
	}
	return told
}
