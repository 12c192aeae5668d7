// Package intent reads and writes what an operator declares for a tenant as one
// text: the configuration, the rollout, the calendars, the environments, the disruption budgets,
// the releases, the webhooks, and who may do what. It decides what is wrong with such a text, how it differs from
// what a site has, and in which order the difference is written, so that a freeze is in effect
// before anything that could open a run.
//
// It does no I/O and reads no clock.
package intent

import (
	"bytes"
	"fmt"
	"path"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Intent is what a text declares. What is absent from it is left as it is.
type Intent struct {
	Config       *v1.OSUpgrade             `json:"config,omitempty"`
	Rollout      *v1.Rollout               `json:"rollout,omitempty"`
	Calendars    map[string]v1.Calendar    `json:"calendars,omitempty"`
	Environments map[string]v1.Environment `json:"environments,omitempty"`
	Budgets      map[string]v1.Budget      `json:"budgets,omitempty"`
	Releases     map[string]v1.Release     `json:"releases,omitempty"`
	Policies     map[string]v1.Policy      `json:"policies,omitempty"`
	Users        map[string]v1.User        `json:"users,omitempty"`
	Approles     map[string]v1.Approle     `json:"approles,omitempty"`
	Webhooks     map[string]v1.Webhook     `json:"webhooks,omitempty"`
	// Deletions are the objects that the text declares as null.
	Deletions map[Key]bool `json:"-"`

	places map[Key]place
}

// place is where an object is declared.
type place struct {
	source string
	// document is nil for an iCalendar text.
	document *document.Document
	field    string
}

// String returns the place as compilers print theirs.
func (p place) String() string {
	if p.document == nil {
		return p.source
	}
	return fmt.Sprintf("%s:%d", p.source, p.document.Line(p.field))
}

// Place returns where a text declares a field of an object: its source, and its line. A
// member that is not there is where the object is. Of an object that no text declares the
// source is empty.
func (i Intent) Place(key Key, field string) (source string, line int) {
	p := i.places[key]
	if p.document != nil {
		line = p.document.Line(p.path(field))
	}
	return p.source, line
}

// Path returns the path of a field of an object in the text that declares it.
func (i Intent) Path(key Key, field string) string { return i.places[key].path(field) }

func (p place) path(field string) string { return strings.Trim(p.field+"."+field, ".") }

// Kind is a kind of object.
type Kind string

// The kinds of objects of a tenant.
const (
	Config      Kind = "config"
	Rollout     Kind = "rollout"
	Calendar    Kind = "calendar"
	Environment Kind = "environment"
	Budget      Kind = "budget"
	Release     Kind = "release"
	Policy      Kind = "policy"
	User        Kind = "user"
	Approle     Kind = "approle"
	Webhook     Kind = "webhook"
)

// one is an object of the kind, with its article.
func (k Kind) one() string {
	switch k {
	case Approle, Environment:
		return "an " + string(k)
	case Budget:
		return "a disruption budget"
	case Config, Rollout, Calendar, Release, Policy, User, Webhook:
	}
	return "a " + string(k)
}

// Key names an object of a tenant.
type Key struct {
	Kind Kind
	// Name is empty for a configuration and a rollout, of which a tenant has one.
	Name string
}

// String returns the key for people, such as "calendar holidays".
func (k Key) String() string { return strings.TrimSpace(string(k.Kind) + " " + k.Name) }

// Source is a text and where it came from.
type Source struct {
	Name string
	Text []byte
	// Calendar is what a text is that is an iCalendar text; nil means that it is a document.
	Calendar *ICalendar
	// ReadFile reads a file that a document names; nil means that it may name none.
	ReadFile func(name string) ([]byte, error)
	// ReadSecret reads a file with a secret that a document names; nil means that it may name
	// none.
	ReadSecret func(name string) ([]byte, error)
}

// ICalendar is the name and the kind of the calendar that an iCalendar text is.
type ICalendar struct{ Name, Kind string }

// contentType tells JSON from YAML: by the end of the name, else by the first
// character.
func (s Source) contentType() string {
	switch path.Ext(s.Name) {
	case ".json":
		return document.JSON
	case ".yaml", ".yml":
		return document.YAML
	}
	if bytes.HasPrefix(bytes.TrimSpace(s.Text), []byte("{")) {
		return document.JSON
	}
	return document.YAML
}

// Problem is one thing that is wrong with a source.
type Problem struct {
	Source string
	// Line is 0 when the whole source is meant.
	Line int
	document.Problem
}

// String returns the problem as compilers print theirs.
func (p Problem) String() string {
	if p.Line == 0 {
		return p.Source + ": " + p.Problem.String()
	}
	return fmt.Sprintf("%s:%d: %s", p.Source, p.Line, p.Problem)
}

// Problems is an error that tells of everything that is wrong, a line each.
type Problems []Problem

// Error returns all problems.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// Decode reads sources, of which each may be several documents, or a calendar. An object may
// be in one of them only. The error is Problems.
func Decode(sources ...Source) (Intent, error) {
	r := reader{
		intent: Intent{
			Calendars: map[string]v1.Calendar{}, Environments: map[string]v1.Environment{}, Budgets: map[string]v1.Budget{}, Releases: map[string]v1.Release{},
			Policies: map[string]v1.Policy{}, Users: map[string]v1.User{}, Approles: map[string]v1.Approle{}, Webhooks: map[string]v1.Webhook{},
			Deletions: map[Key]bool{}, places: map[Key]place{},
		},
	}
	for _, s := range sources {
		if s.Calendar != nil {
			r.fail(s.Name, nil, document.Err(r.calendar(s)...))
			continue
		}
		all, err := document.ParseAll(s.contentType(), s.Text)
		r.fail(s.Name, nil, err)
		if err != nil {
			continue
		}
		for _, d := range all {
			r.fail(s.Name, d, d.Err(r.read(s, d)...))
		}
	}
	if n := len(r.intent.Calendars); n > v1.MaxCalendars {
		r.found = append(r.found, Problem{Source: sources[0].Name, Problem: document.TooMany("calendars", n, v1.MaxCalendars)})
	}
	if n := len(r.intent.Environments); n > v1.MaxEnvironments {
		r.found = append(r.found, Problem{Source: sources[0].Name, Problem: document.TooMany("environments", n, v1.MaxEnvironments)})
	}
	if n := len(r.intent.Budgets); n > v1.MaxBudgets {
		r.found = append(r.found, Problem{Source: sources[0].Name, Problem: document.TooMany("budgets", n, v1.MaxBudgets)})
	}
	if n := len(r.intent.Releases); n > v1.MaxReleases {
		r.found = append(r.found, Problem{Source: sources[0].Name, Problem: document.TooMany("releases", n, v1.MaxReleases)})
	}
	if len(r.found) > 0 {
		return Intent{}, r.found
	}
	return r.intent, nil
}

type reader struct {
	intent Intent
	found  Problems
}

func (r *reader) fail(source string, d *document.Document, err error) {
	problems, _ := err.(document.Problems) //nolint:errorlint // document returns no other
	for _, p := range problems {
		found := Problem{Source: source, Problem: p}
		if d != nil {
			found.Line = d.Line(p.Field)
		}
		r.found = append(r.found, found)
	}
}

// calendar reads an iCalendar text and returns what is wrong with it.
func (r *reader) calendar(s Source) document.Problems {
	problems := r.declare(Key{Kind: Calendar, Name: s.Calendar.Name}, place{source: s.Name})
	c := v1.Calendar{Kind: s.Calendar.Kind, ICS: new(string(s.Text))}
	r.intent.Calendars[s.Calendar.Name] = c
	if !names.Valid(s.Calendar.Name) {
		problems = append(problems, document.Wrong("", s.Calendar.Name, notACalendar))
	}
	return append(problems, c.Validate()...)
}

const notACalendar = "is not the name of a calendar; " + names.Form

// declare notes where an object is declared, and returns that it is declared twice.
func (r *reader) declare(key Key, at place) (problems document.Problems) {
	if before, twice := r.intent.places[key]; twice {
		problems = document.Problems{{Field: at.field, Message: fmt.Sprintf("it is declared twice, here and at %s; declare it once", before)}}
	}
	r.intent.places[key] = at
	return problems
}

// read reads a document and returns what is wrong with its values.
func (r *reader) read(s Source, d *document.Document) document.Problems {
	root := d.Root()
	problems := object(r, s.Name, d, root, Key{Kind: Config}, "", "config", func(_ document.Object, o *v1.OSUpgrade) document.Problems {
		r.intent.Config = o
		return o.Validate()
	})
	problems = append(problems, object(r, s.Name, d, root, Key{Kind: Rollout}, "", "rollout", func(_ document.Object, o *v1.Rollout) document.Problems {
		r.intent.Rollout = o
		return o.Validate()
	})...)
	problems = append(problems, named(r, s, d, Calendar, "calendars", validName, func(name string, text document.Object, c *v1.Calendar) document.Problems {
		from, wrong := s.readICS(text, c)
		r.intent.Calendars[name] = *c
		if len(wrong) > 0 {
			return wrong
		}
		return inFile(from, c.Validate())
	})...)
	problems = append(problems, named(r, s, d, Environment, "environments", validEnvironment, func(name string, _ document.Object, e *v1.Environment) document.Problems {
		r.intent.Environments[name] = *e
		return e.Validate()
	})...)
	problems = append(problems, named(r, s, d, Budget, "budgets", validName, func(name string, _ document.Object, b *v1.Budget) document.Problems {
		r.intent.Budgets[name] = *b
		return b.Validate()
	})...)
	problems = append(problems, named(r, s, d, Release, "releases", validName, func(name string, _ document.Object, one *v1.Release) document.Problems {
		r.intent.Releases[name] = *one
		return one.Validate()
	})...)
	return append(problems, r.readAccess(s, d)...)
}

// readAccess reads who may do what, and the webhooks. A password and a secret are in files of
// their own: what declares the rest is shown and shared.
func (r *reader) readAccess(s Source, d *document.Document) document.Problems {
	problems := named(r, s, d, Policy, "policies", validName, func(name string, _ document.Object, p *v1.Policy) document.Problems {
		wrong := otherName(&p.Name, name)
		r.intent.Policies[name] = *p
		return append(wrong, p.Validate()...)
	})
	problems = append(problems, named(r, s, d, User, "users", validLogin, func(name string, text document.Object, u *v1.User) document.Problems {
		wrong := append(otherName(&u.Name, name), s.readSecret(text, "password", &u.Password)...)
		r.intent.Users[name] = *u
		return append(wrong, u.Validate()...)
	})...)
	problems = append(problems, named(r, s, d, Approle, "approles", validLogin, func(name string, _ document.Object, a *v1.Approle) document.Problems {
		wrong := otherName(&a.Name, name)
		r.intent.Approles[name] = *a
		return append(wrong, a.Validate()...)
	})...)
	return append(problems, named(r, s, d, Webhook, "webhooks", validName, func(name string, text document.Object, w *v1.Webhook) document.Problems {
		wrong := s.readSecret(text, "secret", &w.Secret)
		r.intent.Webhooks[name] = *w
		return append(wrong, w.Validate()...)
	})...)
}

// validName, validLogin and validEnvironment return what is wrong with the name of an object of a
// kind; empty if it is right.
func validName(kind Kind, name string) string {
	if names.Valid(name) {
		return ""
	}
	return "is not the name of " + kind.one() + "; " + names.Form
}

func validLogin(kind Kind, name string) string {
	if names.ValidLogin(name) {
		return ""
	}
	return "is not the name of " + kind.one() + "; " + names.LoginForm
}

func validEnvironment(_ Kind, name string) string { return v1.EnvironmentName(name) }

// otherName objects to a name in an object that is not that of the object. The object itself has
// no name.
func otherName(got *string, name string) (problems document.Problems) {
	if *got != "" && *got != name {
		problems = document.Problems{document.Wrong("name", *got, "is not the name of the object; leave it out")}
	}
	*got = ""
	return problems
}

// named notes the objects of a kind that have names.
func named[T any](
	r *reader, s Source, d *document.Document, kind Kind, field string, wrongName func(Kind, string) string, put func(string, document.Object, *T) document.Problems,
) (problems document.Problems) {
	root := d.Root()
	if !root.Has(field) {
		return nil
	}
	all, _ := root.Nested(field)
	for _, name := range all.Keys() {
		if wrong := wrongName(kind, name); wrong != "" {
			problems = append(problems, document.Wrong(field+"."+name, name, wrong))
		}
		problems = append(problems, object(r, s.Name, d, all, Key{Kind: kind, Name: name}, field+".", name, func(text document.Object, value *T) document.Problems {
			return put(name, text, value)
		})...)
	}
	return problems
}

// readSecret reads a secret from the file that stands for it.
func (s Source) readSecret(text document.Object, member string, secret *string) document.Problems {
	inFile := member + "-file"
	given := *secret != ""
	*secret = ""
	if given {
		return document.Problems{{Field: member, Message: "a secret does not belong in this text; write it to a file that only you may read, and name the file with " + inFile}}
	}
	if !text.Has(inFile) {
		return nil
	}
	name, ok := text.Text(inFile)
	switch {
	case !ok: // That is a problem already.
		return nil
	case s.ReadSecret == nil:
		return document.Problems{document.Wrong(inFile, name, "cannot be read here; use osupgrade-agent apply")}
	}
	body, err := s.ReadSecret(name)
	if err != nil {
		return document.Problems{{Field: inFile, Value: name, Message: err.Error()}}
	}
	if *secret = strings.TrimRight(string(body), "\r\n"); *secret == "" {
		return document.Problems{document.Wrong(inFile, name, "is an empty file")}
	}
	return nil
}

// icsFile is the member of a calendar that names the file of its iCalendar text.
const icsFile = "ics-file"

// readICS reads the iCalendar text of a calendar from the file that a document names; an empty
// name is none.
func (s Source) readICS(text document.Object, c *v1.Calendar) (name string, wrong document.Problems) {
	if !text.Has(icsFile) {
		return "", nil
	}
	name, ok := text.Text(icsFile)
	switch {
	case !ok: // That is a problem already.
		return "", document.Problems{{Field: icsFile}}
	case c.ICS != nil:
		return "", document.Problems{document.Wrong(icsFile, name, "is given besides ics; use one of them")}
	case s.ReadFile == nil:
		return "", document.Problems{document.Wrong(icsFile, name, "cannot be read here; use ics with the text itself")}
	}
	ics, err := s.ReadFile(name)
	if err != nil {
		return "", document.Problems{{Field: icsFile, Value: name, Message: err.Error()}}
	}
	c.ICS = new(string(ics))
	return name, nil
}

// inFile returns the problems of a calendar, those of its iCalendar text at the member that
// names its file.
func inFile(name string, problems document.Problems) document.Problems {
	for i, p := range problems {
		if member, _, _ := strings.Cut(p.Field, "."); name != "" && member == "ics" {
			problems[i].Field, problems[i].Message = icsFile, name+": "+p.String()
		}
	}
	return problems
}

// object reads the object that is the last part of a field, if it is there. put takes it, and
// returns what is wrong with its values.
func object[T any](
	r *reader, source string, d *document.Document, in document.Object, key Key, above, member string, put func(document.Object, *T) document.Problems,
) document.Problems {
	field := above + member
	if !in.Has(member) {
		return nil
	}
	problems := r.declare(key, place{source, d, field})
	if in.Null(member) {
		r.intent.Deletions[key] = true
		return problems
	}
	var value T
	text, ok := in.Nested(member)
	if !ok {
		return problems
	}
	text.Fill(&value)
	return append(problems, put(text, &value).Under(field)...)
}

// Encode writes the intent as a text that Decode reads, in JSON or else YAML.
func (i Intent) Encode(contentType string) ([]byte, error) {
	_, text, err := v1.Encode(contentType, i)
	return text, err
}
