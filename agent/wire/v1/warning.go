package v1

import "strings"

// The objects of an IntentWarning.
const (
	ConfigObject  = "config"
	RolloutObject = "rollout"
	// EnvironmentsObject is that of warnings about several environments.
	EnvironmentsObject = "environments"
	// ReleasesObject is that of warnings about releases.
	ReleasesObject = "releases"
	// SelectorObject is no object: the warning is about what a request chooses hosts by.
	SelectorObject = "selector"
)

// IntentWarning is a part of what a tenant's operators declare that has no effect, because
// no host that is known matches it, or that may have another effect than meant. It is no error: such a
// host may be about to join.
type IntentWarning struct {
	// Object is config, rollout, environments.NAME, releases.NAME or budgets.NAME.
	Object string `json:"object"`
	// Field is the path of a member of it, such as "stages[0].match.roles[1]".
	Field string `json:"field,omitempty"`
	Text  string `json:"text"`
}

// OfBudget reports whether the warning is about how many hosts a disruption budget lets leave
// service, and not about what matches no host.
func (w IntentWarning) OfBudget() bool {
	return strings.Contains(w.Text, budgetLimits) || strings.Contains(w.Text, budgetForbids)
}

// SameLimits reports whether two warnings, about a stage and about a disruption budget, are about the
// same limits of both.
func (w IntentWarning) SameLimits(other IntentWarning) bool {
	_, of, found := strings.Cut(w.Text, " lets ")
	_, ofOther, foundOther := strings.Cut(other.Text, " lets ")
	return found && foundOther && of == ofOther && w.OfBudget() && w.Object != other.Object
}

// The words of the warnings about the limits of disruption budgets.
const (
	budgetLimits  = "the smaller number counts"
	budgetForbids = "so none can be upgraded"
)

// EnvironmentObject is the object of the warnings about an environment.
func EnvironmentObject(name string) string { return EnvironmentsObject + "." + name }

// BudgetObject is the object of the warnings about a disruption budget.
func BudgetObject(name string) string { return "budgets." + name }

// ReleaseObject is the object of the warnings about a release.
func ReleaseObject(name string) string { return ReleasesObject + "." + name }

// String returns the path from the tenant on, and the text.
func (w IntentWarning) String() string {
	return strings.Trim(w.Object+"."+w.Field, ".") + ": " + w.Text
}

// WarningHeader is the header of an answer that has a warning about the object in the
// request, one each (RFC 7234 5.5). Kubernetes' API does the same.
const WarningHeader = "Warning"

// warningCode is that of a warning that stays as long as its cause. The agent "-" is nobody.
const warningCode = `299 - "`

// Header returns the value of the header.
func (w IntentWarning) Header() string {
	text := strings.TrimPrefix(w.Field+": "+w.Text, ": ")
	return warningCode + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

// ParseWarnings reads the values of the header of an answer about an object. What is not a
// warning of this kind is left out.
func ParseWarnings(object string, values []string) []IntentWarning {
	var found []IntentWarning
	for _, rest := range values {
		for rest != "" {
			var text string
			if text, rest = nextWarning(rest); text == "" {
				continue
			}
			w := IntentWarning{Object: object, Text: text}
			if field, about, ok := strings.Cut(text, ": "); ok && field != "" && about != "" && !strings.Contains(field, " ") {
				w.Field, w.Text = field, about
			}
			found = append(found, w)
		}
	}
	return found
}

// nextWarning returns the text of the first warning in a value, and what follows it: a proxy
// may join the values of a header.
func nextWarning(value string) (text, rest string) {
	_, quoted, found := strings.Cut(value, warningCode)
	if !found {
		return "", ""
	}
	var b strings.Builder
	for i := 0; i < len(quoted); i++ {
		switch {
		case quoted[i] == '"':
			return b.String(), quoted[i+1:]
		case quoted[i] == '\\' && i+1 < len(quoted):
			i++
		}
		b.WriteByte(quoted[i])
	}
	return "", ""
}
