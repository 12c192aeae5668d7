package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/intent"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/cli/shell"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// kind is a kind of objects of a tenant, as get, apply, edit and delete know it.
type kind struct {
	name intent.Kind
	// plural names all objects of the kind; empty if a tenant has one.
	plural string
	// read reads an object into what the site has, and returns its ETag.
	read func(ctx context.Context, d *siteIntent, name string) (etag string, err error)
	// validate asks the site whether it would accept an object.
	validate func(ctx context.Context, d *siteIntent, want intent.Intent, key intent.Key) ([]v1.IntentWarning, error)
	// removable asks the site whether it would delete an object.
	removable func(ctx context.Context, d *siteIntent, name string, when client.Precondition) error
	// write and remove return what the site warns of.
	write  func(ctx context.Context, d *siteIntent, want intent.Intent, key intent.Key, when client.Precondition) ([]v1.IntentWarning, error)
	remove func(ctx context.Context, d *siteIntent, name string, when client.Precondition, force bool) ([]v1.IntentWarning, error)
	// head and list are the table of all objects; the first cell is the name. A row without a
	// name belongs to the object above.
	head []string
	list func(ctx context.Context, api *client.Client, tenant string) ([][]string, error)
}

// kinds are all kinds.
var kinds = []kind{
	single(intent.Config, client.Configs, func(i *intent.Intent) **v1.OSUpgrade { return &i.Config }),
	single(intent.Rollout, client.Rollouts, func(i *intent.Intent) **v1.Rollout { return &i.Rollout }),
	named(intent.Calendar, "calendars", client.CalendarNamed, func(i *intent.Intent) *map[string]v1.Calendar { return &i.Calendars }, same[v1.Calendar], always(same[v1.Calendar]),
		listing{[]string{"NAME", "KIND", "EVENTS", "DESCRIPTION"}, listCalendars}),
	named(intent.Environment, "environments", client.EnvironmentNamed, func(i *intent.Intent) *map[string]v1.Environment { return &i.Environments }, same[v1.Environment], always(same[v1.Environment]),
		listing{[]string{"NAME", "HOSTS", "WINDOWS", "ROLLOUT", "DESCRIPTION"}, listEnvironments}),
	named(intent.Budget, "budgets", client.BudgetNamed, func(i *intent.Intent) *map[string]v1.Budget { return &i.Budgets }, same[v1.Budget], always(same[v1.Budget]),
		listing{[]string{"NAME", "PER", "MAX-UNAVAILABLE", "MIN-AVAILABLE", "QUERY"}, listBudgets}),
	named(intent.Release, "releases", client.ReleaseNamed, func(i *intent.Intent) *map[string]v1.Release { return &i.Releases }, same[v1.Release], v1.ReleaseOver,
		listing{[]string{"NAME", "VERSION", "NAMED BY", "WITHDRAWN", "DESCRIPTION"}, listReleases}),
	named(intent.Policy, "policies", client.PolicyNamed, func(i *intent.Intent) *map[string]v1.Policy { return &i.Policies }, withoutName, always(same[v1.Policy]),
		listing{[]string{"NAME", "RULE"}, listPolicies}),
	named(intent.User, "users", client.UserNamed, func(i *intent.Intent) *map[string]v1.User { return &i.Users }, v1.User.Canonical, always(v1.User.Canonical),
		listing{[]string{"NAME", "ALLOWS", "TOKEN VALID", "EXTENDED AT MOST"}, listUsers}),
	named(intent.Approle, "approles", client.ApproleNamed, func(i *intent.Intent) *map[string]v1.Approle { return &i.Approles }, v1.Approle.Canonical, always(same[v1.Approle]),
		listing{[]string{"NAME", "ALLOWS", "SECRET-ID VALID", "TOKEN VALID", "EXTENDED AT MOST"}, listApproles}),
	named(intent.Webhook, "webhooks", client.WebhookNamed, func(i *intent.Intent) *map[string]v1.Webhook { return &i.Webhooks }, v1.Webhook.WithoutSecret, always(v1.Webhook.WithoutSecret),
		listing{[]string{"NAME", "NEWS", "URL", "DISABLED", "DESCRIPTION"}, listDeclaredWebhooks}),
}

// kindOf returns a kind.
func kindOf(name intent.Kind) kind {
	return kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })]
}

func same[T any](value T) T { return value }

// always is what is written of an object that there is already, if that does not depend on what it is.
func always[T any](known func(T) T) func(was, value T) T {
	return func(_, value T) T { return known(value) }
}

func withoutName(p v1.Policy) v1.Policy {
	p.Name = ""
	return p
}

// single is a kind of which a tenant has one object.
func single[T any](name intent.Kind, object client.Object[T], in func(*intent.Intent) **T) kind {
	return kindFrom(name, func(string) client.Object[T] { return object },
		func(i *intent.Intent, _ string) *T { return *in(i) }, func(i *intent.Intent, _ string, value T) { *in(i) = &value }, always(same[T]))
}

// listing is a table of objects.
type listing struct {
	head []string
	list func(ctx context.Context, api *client.Client, tenant string) ([][]string, error)
}

// named is a kind whose objects have names. shown is how an object is shown, and known what is
// written of one that there is already: a secret is written once.
func named[T any](
	name intent.Kind, plural string, object func(name string) client.Object[T], in func(*intent.Intent) *map[string]T, shown func(T) T, known func(was, value T) T, all listing,
) kind {
	k := kindFrom(name, object, func(i *intent.Intent, name string) *T {
		value, there := (*in(i))[name]
		if !there {
			return nil
		}
		return &value
	}, func(i *intent.Intent, name string, value T) {
		if *in(i) == nil {
			*in(i) = map[string]T{}
		}
		(*in(i))[name] = shown(value)
	}, known)
	k.plural, k.head, k.list = plural, all.head, all.list
	return k
}

func kindFrom[T any](
	name intent.Kind, object func(name string) client.Object[T], get func(*intent.Intent, string) *T, set func(*intent.Intent, string, T), known func(was, value T) T,
) kind {
	// written is what is to be written of an object that is wanted.
	written := func(d *siteIntent, want intent.Intent, key intent.Key) T {
		value := *get(&want, key.Name)
		if _, exists := d.etags[key]; exists {
			value = known(*get(&d.has, key.Name), value)
		}
		return value
	}
	return kind{
		name: name,
		read: func(ctx context.Context, d *siteIntent, name string) (string, error) {
			stored, err := object(name).Get(ctx, d.api, d.tenant)
			if err == nil {
				set(&d.has, name, stored.Value)
			}
			return stored.ETag, err
		},
		validate: func(ctx context.Context, d *siteIntent, want intent.Intent, key intent.Key) ([]v1.IntentWarning, error) {
			return object(key.Name).Validate(ctx, d.api, d.tenant, client.Stored[T]{}, written(d, want, key), client.Precondition{})
		},
		removable: func(ctx context.Context, d *siteIntent, name string, when client.Precondition) error {
			return object(name).ValidateDelete(ctx, d.api, d.tenant, when)
		},
		write: func(ctx context.Context, d *siteIntent, want intent.Intent, key intent.Key, when client.Precondition) ([]v1.IntentWarning, error) {
			now, err := object(key.Name).Put(ctx, d.api, d.tenant, client.Stored[T]{}, written(d, want, key), when)
			return now.Warnings, err
		},
		remove: func(ctx context.Context, d *siteIntent, name string, when client.Precondition, force bool) ([]v1.IntentWarning, error) {
			one := object(name)
			if force {
				one = one.Forced()
			}
			return one.Remove(ctx, d.api, d.tenant, when)
		},
	}
}

func listCalendars(ctx context.Context, api *client.Client, tenant string) (rows [][]string, err error) {
	all, err := api.Calendars(ctx, tenant)
	for _, c := range all {
		rows = append(rows, []string{c.Name, c.Kind, fmt.Sprint(c.Events), c.Description})
	}
	return rows, err
}

// listEnvironments counts the hosts of each environment, if the token may read them.
func listEnvironments(ctx context.Context, api *client.Client, tenant string) (rows [][]string, err error) {
	all, err := api.StoredEnvironments(ctx, tenant)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	counts := map[string]int{}
	hosts, hostsErr := api.Hosts(ctx, tenant, "")
	for _, h := range hosts {
		counts[h.Environment]++
	}
	own := func(is bool) string {
		if is {
			return "own"
		}
		return "tenant's"
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		e, count := all[name].Value, "?"
		if hostsErr == nil {
			count = fmt.Sprint(counts[name])
		}
		rows = append(rows, []string{name, count, own(e.HasSchedule()), own(e.Rollout != nil), e.Description})
	}
	return rows, nil
}

// listBudgets says of each query whether it keeps hosts in service.
func listBudgets(ctx context.Context, api *client.Client, tenant string) (rows [][]string, err error) {
	all, err := api.StoredBudgets(ctx, tenant)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	state, err := api.State(ctx, tenant, "")
	if err != nil {
		return nil, err
	}
	refuses := map[string]string{}
	for _, r := range state.BudgetRefusals {
		refuses[r.Budget] = "refuses: " + r.Reason
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b, query := all[name].Value, ""
		if b.Prometheus != nil {
			query = cmp.Or(refuses[name], "does not refuse")
		}
		rows = append(rows, []string{name, b.Per, string(b.MaxUnavailable), string(b.MinAvailable), query})
	}
	return rows, nil
}

func listReleases(ctx context.Context, api *client.Client, tenant string) (rows [][]string, err error) {
	all, err := api.Releases(ctx, tenant)
	for _, r := range all {
		withdrawn := ""
		if r.Withdrawn != nil {
			withdrawn = r.Withdrawn.Reason
		}
		rows = append(rows, []string{r.Name, r.Version, text.ListOf(r.NamedBy, len(r.NamedBy), mostNames), withdrawn, r.Description})
	}
	return rows, err
}

func listPolicies(ctx context.Context, api *client.Client, tenant string) (rows [][]string, err error) {
	all, err := api.Policies(ctx, tenant)
	for _, p := range all {
		name := p.Name
		for _, rule := range p.RestAPI.Rules {
			rows, name = append(rows, []string{name, ruleLine(rule)}), ""
		}
		if name != "" {
			rows = append(rows, []string{name, "none"})
		}
	}
	return rows, err
}

// ruleLine says in a line what a rule allows and rejects.
func ruleLine(rule v1.PolicyRule) string {
	words := map[string][]string{}
	for operation, word := range rule.Operations {
		words[word] = append(words[word], operation)
	}
	parts := []string{rule.Path + ":"}
	for _, word := range []string{"allow", "reject"} {
		if operations := words[word]; len(operations) > 0 {
			slices.Sort(operations)
			parts = append(parts, word+" "+strings.Join(operations, ", "))
		}
	}
	if rule.Description != "" {
		parts = append(parts, "("+rule.Description+")")
	}
	return strings.Join(parts, " ")
}

func listUsers(ctx context.Context, api *client.Client, tenant string) (rows [][]string, err error) {
	all, err := api.Users(ctx, tenant)
	for _, u := range all {
		rows = append(rows, []string{u.Name, strings.Join(u.TokenPolicies, ","), u.TokenTTL, u.TokenMaxTTL})
	}
	return rows, err
}

func listApproles(ctx context.Context, api *client.Client, tenant string) (rows [][]string, err error) {
	all, err := api.Approles(ctx, tenant)
	for _, a := range all {
		rows = append(rows, []string{a.Name, strings.Join(a.TokenPolicies, ","), a.SecretIDTTL, a.TokenTTL, a.TokenMaxTTL})
	}
	return rows, err
}

func listDeclaredWebhooks(ctx context.Context, api *client.Client, tenant string) (rows [][]string, err error) {
	all, err := api.Webhooks(ctx, tenant)
	for _, w := range all {
		news, disabled := strings.Join(w.News, ","), ""
		if news == "" {
			news = "all"
		}
		if w.Disabled {
			disabled = "yes"
		}
		rows = append(rows, []string{w.Name, news, w.URL, disabled, w.Description})
	}
	return rows, err
}

// request is what get, edit and delete are asked for: objects, or all of a kind.
type request struct {
	keys []intent.Key
	// all are the kinds of which all objects are asked for.
	all []kind
}

// parseKeys reads what get, edit and delete are asked for: KIND/NAME, a kind of which a tenant
// has one, all of a kind, or a kind and names.
func parseKeys(texts []string) (asked request, err error) {
	for i, text := range texts {
		word, name, isNamed := strings.Cut(text, "/")
		at := slices.IndexFunc(kinds, func(k kind) bool { return word == string(k.name) || !isNamed && k.plural != "" && word == k.plural })
		if at < 0 || isNamed && (name == "" || kinds[at].plural == "") {
			return asked, notAnObject(texts[:i+1])
		}
		switch k := kinds[at]; {
		case isNamed || k.plural == "":
			asked.keys = append(asked.keys, intent.Key{Kind: k.name, Name: name})
		case i == 0 && len(texts) > 1 && word == string(k.name):
			for _, name := range texts[1:] {
				asked.keys = append(asked.keys, intent.Key{Kind: k.name, Name: name})
			}
			return asked, nil
		case word == string(k.name):
			return asked, misusedf("which %s? Name it, such as %s/NAME, or use %s for all", word, word, k.plural)
		default:
			asked.all = append(asked.all, k)
		}
	}
	return asked, nil
}

// notAnObject says what would be right in place of the last of texts. A plural and a name, such as
// environments basel, were meant as environment/basel.
func notAnObject(texts []string) error {
	words := strings.Split(strings.Join(texts, "/"), "/")
	if len(words) == 2 && words[1] != "" {
		if at := slices.IndexFunc(kinds, func(k kind) bool { return k.plural == words[0] }); at >= 0 {
			return misusedf("%s means all of them; to name one: %s/%.100s", words[0], kinds[at].name, words[1])
		}
	}
	return misusedf("%.100q is not an object; use %s", texts[len(texts)-1], objectForms())
}

// objectForms says how objects are named.
func objectForms() string {
	var forms []string
	for _, k := range kinds {
		if k.plural == "" {
			forms = append(forms, string(k.name))
		} else {
			forms = append(forms, k.plural, string(k.name)+"/NAME")
		}
	}
	return strings.Join(forms[:len(forms)-1], ", ") + " or " + forms[len(forms)-1]
}

// find returns the objects that are asked for.
func (r request) find(ctx context.Context, api *client.Client, tenant string) ([]intent.Key, error) {
	keys := slices.Clone(r.keys)
	for _, k := range r.all {
		rows, err := k.list(ctx, api, tenant)
		if err != nil && !client.Missing(err) {
			return nil, err
		}
		for _, row := range rows {
			if row[0] != "" {
				keys = append(keys, intent.Key{Kind: k.name, Name: row[0]})
			}
		}
	}
	return keys, nil
}

// lacks says that a tenant has no such object, and which there are of its kind.
func lacks(ctx context.Context, api *client.Client, tenant string, key intent.Key) error {
	missing := fmt.Sprintf("tenant %s has no %s", tenant, key)
	k := kindOf(key.Kind)
	if k.plural == "" {
		return errors.New(missing)
	}
	others, err := request{all: []kind{k}}.find(ctx, api, tenant)
	if err != nil || len(others) == 0 {
		return errors.New(missing)
	}
	names := make([]string, len(others))
	for i, other := range others {
		names[i] = other.Name
	}
	return fmt.Errorf("%s; it has %s", missing, text.ListOf(names, len(names), mostNames))
}

// objectWords are what may stand for an object on a command line.
func objectWords(ctx context.Context, api *client.Client, tenant string) []shell.Word {
	words := map[string]bool{}
	for _, k := range kinds {
		if k.plural == "" {
			words[string(k.name)] = true
			continue
		}
		words[k.plural] = true
		found, err := request{all: []kind{k}}.find(ctx, api, tenant)
		if err != nil {
			continue // The token may not read them.
		}
		for _, key := range found {
			words[string(key.Kind)+"/"+key.Name] = true
		}
	}
	var all []shell.Word
	for _, word := range slices.Sorted(maps.Keys(words)) {
		all = append(all, shell.Word{Text: word})
	}
	return all
}
