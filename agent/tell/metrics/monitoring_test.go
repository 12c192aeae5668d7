package metrics

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// monitoring are the files that people load into their Prometheus and Grafana.
const monitoring = "../../../examples/monitoring"

// promtool runs Prometheus' own tool in the folder of the examples.
func promtool(t *testing.T, stdin string, args ...string) {
	t.Helper()
	program, err := filepath.Abs("../../../.cache/bin/promtool")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		program, err = exec.LookPath("promtool")
		switch {
		case err != nil && os.Getenv("CI") != "":
			t.Fatal("there is no promtool; run tools/prometheus.sh install")
		case err != nil:
			t.Skip("there is no promtool; run tools/prometheus.sh install")
		}
	}
	command := exec.CommandContext(t.Context(), program, args...) //nolint:gosec // Prometheus' own program
	command.Dir, command.Stdin = monitoring, strings.NewReader(stdin)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// TestAlerts checks that Prometheus loads the alert rules and its configuration, and plays
// the unit tests of the rules.
func TestAlerts(t *testing.T) {
	t.Parallel()
	promtool(t, "", "check", "rules", "alerts.yml")
	promtool(t, "", "test", "rules", "alerts_test.yml", "alerts_days_test.yml")
	promtool(t, "", "check", "config", "--syntax-only", "prometheus.yml")
}

// TestMetricsAreWellFormed checks a scrape with Prometheus' own rules for names, types and
// texts.
func TestMetricsAreWellFormed(t *testing.T) {
	t.Parallel()
	var own strings.Builder
	for line := range strings.Lines(scrape(t, full(t), everything)) {
		if strings.Contains(line, "osupgrade_") {
			own.WriteString(line)
		}
	}
	promtool(t, own.String(), "check", "metrics")
}

// metricName is the name of a metric of ours in an expression.
var metricName = regexp.MustCompile(`osupgrade_[a-z_]+`)

// checkNames checks that an expression names metrics that exist.
func checkNames(t *testing.T, where, expr string) {
	t.Helper()
	named := families(t, full(t))
	for _, name := range metricName.FindAllString(expr, -1) {
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count"), "_sum")
		if named[name] == nil && named[base] == nil {
			t.Errorf("%s asks for %s, which is no metric", where, name)
		}
	}
}

// TestEachAlertIsTested checks that each alert asks for metrics that exist, and has a unit
// test in which it fires and one in which it does not.
func TestEachAlertIsTested(t *testing.T) {
	t.Parallel()
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	readYAML(t, "alerts.yml", &rules)
	type unitTests struct {
		Tests []struct {
			Exprs []struct {
				Expr    string
				Samples []any `yaml:"exp_samples"`
			} `yaml:"promql_expr_test"`
		}
	}
	var tests, days unitTests
	readYAML(t, "alerts_test.yml", &tests)
	readYAML(t, "alerts_days_test.yml", &days)
	var fires, quiet []string
	for _, one := range append(tests.Tests, days.Tests...) {
		for _, e := range one.Exprs {
			if len(e.Samples) > 0 {
				fires = append(fires, e.Expr)
			} else {
				quiet = append(quiet, e.Expr)
			}
		}
	}
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			checkNames(t, rule.Alert, rule.Expr)
			names := func(expr string) bool { return strings.Contains(expr, `alertname="`+rule.Alert+`"`) }
			if !slices.ContainsFunc(fires, names) || !slices.ContainsFunc(quiet, names) {
				t.Errorf("%s has no unit test in which it fires, or none in which it is quiet", rule.Alert)
			}
			if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
				t.Errorf("%s does not say what is wrong and what to do", rule.Alert)
			}
		}
	}
	if len(rules.Groups) == 0 || len(rules.Groups[0].Rules) < 10 {
		t.Errorf("only these rules were read: %+v", rules)
	}
}

// TestDashboard checks that Prometheus can read each expression of the dashboard, and that
// each asks for metrics that exist.
func TestDashboard(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(monitoring, "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Title  string
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	variables := strings.NewReplacer("$__rate_interval", "5m", "$__range", "1d", "$tenant", "acme")
	type rule struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	var all []rule
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			checkNames(t, panel.Title, target.Expr)
			all = append(all, rule{"panel_" + string(rune('a'+len(all)%26)) + string(rune('a'+len(all)/26)), variables.Replace(target.Expr)})
		}
	}
	if dashboard.Title == "" || len(all) < 10 {
		t.Fatalf("the dashboard has only %d expressions", len(all))
	}
	rules, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": all}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "dashboard.yml")
	if err := os.WriteFile(file, rules, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "", "check", "rules", file)
}

func readYAML(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(monitoring, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}
