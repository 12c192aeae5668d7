//go:build !worker

package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// storedCredential is a token or a host key as a site stores it: without its secret.
type storedCredential struct {
	kind, owner, tenant, note, id string
	made                          time.Time
	// used is when a token was last used; zero means never, or that nobody knows.
	used   time.Time
	remove func() error
	// removed tells what follows from its removal.
	removed string
}

// damagedBy returns the credential as it is shown if its file is damaged.
func (k storedCredential) damagedBy(damage error) storedCredential {
	if damage != nil {
		k.owner, k.tenant, k.note = "?", "?", damage.Error()
	}
	return k
}

// shortID is how much of an id is shown, and leastID how much of it must be given.
const shortID, leastID = 12, 6

// credentialFolder is the folder of the site whose credentials a command reads.
type credentialFolder struct {
	Data string `help:"The site's folder." default:"/var/lib/osupgrade" type:"path" env:"OSUPGRADE_DATA"`
}

func (f *credentialFolder) exists() error {
	if _, err := os.Stat(filepath.Join(f.Data, "credentials")); err != nil {
		return fmt.Errorf("data: %s is not the folder of a site: %w", f.Data, err)
	}
	return nil
}

// all returns the credentials of the site, by kind, tenant, owner and age.
func (f *credentialFolder) all() ([]storedCredential, error) {
	if err := f.exists(); err != nil {
		return nil, err
	}
	tokens, err := f.tokens()
	if err != nil {
		return nil, err
	}
	keys, err := f.keys()
	if err != nil {
		return nil, err
	}
	logins, err := f.logins()
	if err != nil {
		return nil, err
	}
	all := slices.Concat(keys, tokens, logins)
	slices.SortFunc(all, func(a, b storedCredential) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.owner, b.owner), a.made.Compare(b.made))
	})
	return all, nil
}

func (f *credentialFolder) tokens() ([]storedCredential, error) {
	opened, err := site.OpenTokens(f.Data)
	if err != nil {
		return nil, err
	}
	tokens, err := opened.List()
	if err != nil {
		return nil, err
	}
	all := make([]storedCredential, 0, len(tokens))
	for _, t := range tokens {
		k := storedCredential{kind: "token", owner: t.Name, tenant: t.Tenant, id: t.ID, made: t.Since, used: t.Used, removed: "the next request with it is refused"}
		k.remove = func() error { return opened.Remove(t.ID) }
		k.note = strings.Join(t.Allow, " ") + " "
		if t.Expires != nil {
			k.note += "until " + t.Expires.UTC().Format(time.RFC3339)
		}
		if t.Login != nil {
			k.note = "login of the " + t.Login.Of + ", " + k.note
		}
		all = append(all, k.damagedBy(t.Damage))
	}
	return all, nil
}

func (f *credentialFolder) keys() ([]storedCredential, error) {
	opened, err := site.OpenHosts(f.Data)
	if err != nil {
		return nil, err
	}
	tokens, err := site.OpenJoinTokens(f.Data, nil)
	if err != nil {
		return nil, err
	}
	keys, err := opened.List()
	if err != nil {
		return nil, err
	}
	all := make([]storedCredential, 0, len(keys))
	for _, h := range keys {
		k := storedCredential{kind: "key", owner: h.Host, tenant: h.Tenant, id: h.Public, made: h.Made, removed: "a worker that is connected with it is disconnected within a second"}
		k.remove = func() error {
			// First the token by which it has come: it must not bring the key back.
			if err := tokens.Forget(h.Public); err != nil {
				return err
			}
			return opened.Remove(h.Public)
		}
		all = append(all, k.damagedBy(h.Damage))
	}
	return all, nil
}

// listCredentialsCommand lists the tokens, users, approles and host keys that a site accepts.
type listCredentialsCommand struct{ credentialFolder }

// Run implements the command.
func (c *listCredentialsCommand) Run(out io.Writer) error {
	all, err := c.all()
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "ID\tKIND\tTENANT\tOWNER\tMADE\tLAST USED\tALLOWS")
	for _, k := range all {
		used := "-"
		if !k.used.IsZero() {
			used = k.used.UTC().Format("2006-01-02T15:04Z")
		}
		_, _ = fmt.Fprintf(table, "%.*s\t%s\t%s\t%s\t%s\t%s\t%s\n", shortID, k.id, k.kind, k.tenant, k.owner, k.made.UTC().Format(time.RFC3339), used, strings.TrimSpace(k.note))
	}
	return table.Flush()
}

// removeCredentialCommand removes a token, a user, an approle or a host key.
type removeCredentialCommand struct {
	credentialFolder
	ID string `arg:"" help:"Id of the token, user, approle or host key, as credentials list shows it."`
}

// find returns the one credential whose id begins so.
func (f *credentialFolder) find(id string) (found storedCredential, err error) {
	if len(id) < leastID {
		return found, misusedf("id: %q is too short; use at least %d characters of what credentials list shows", id, leastID)
	}
	all, err := f.all()
	if err != nil {
		return found, err
	}
	all = slices.DeleteFunc(all, func(k storedCredential) bool { return !strings.HasPrefix(k.id, id) })
	switch {
	case len(all) == 0:
		return found, fmt.Errorf("id: %.200q is the id of no token, user, approle and host key in %s; see credentials list", id, f.Data)
	case len(all) > 1:
		return found, misusedf("id: %q begins the ids of %d credentials; use more of it", id, len(all))
	}
	return all[0], nil
}

// Run implements the command.
func (c *removeCredentialCommand) Run(out io.Writer) error {
	k, err := c.find(c.ID)
	if err != nil {
		return err
	}
	record := v1.AuditRecord{Tenant: k.tenant, Action: "delete", Object: k.kind + "/" + k.owner, Detail: "id " + shortIDOf(k.id)}
	switch {
	case k.owner == "?": // Its file is damaged, and nobody knows whose it is.
		record.Tenant, record.Object, record.Detail = "", k.kind+"/"+shortIDOf(k.id), "its file is damaged"
	case k.kind == "token":
		record.Object, record.Detail = "token/"+shortIDOf(k.id), "name "+k.owner
	case k.kind == "key":
		record.Action, record.Object, record.Detail = "delete-key", "host/"+k.owner, "key "+k.id
	}
	if err := recorded(c.Data, record, func(*v1.AuditRecord) error { return k.remove() }); err != nil {
		return fmt.Errorf("cannot remove %s: %w", c.ID, err)
	}
	_, err = fmt.Fprintf(out, "Removed the %s of %s of tenant %s: %s.\n", k.kind, k.owner, k.tenant, k.removed)
	return err
}

// rotateTokenCommand makes a token in place of another.
type rotateTokenCommand struct {
	credentialFolder
	ID      string `arg:"" help:"Id of the token, as credentials list shows it."`
	Overlap length `help:"How long the old token stays good, such as 1h, so that who has it can change it in peace (default: not at all)." placeholder:"TIME"`
}

// Help describes the command.
func (c *rotateTokenCommand) Help() string {
	return `The new token has the name, tenant, roles and end of the old one. The key of a host is rotated on the
host itself: osupgrade-agent worker rotate-key.`
}

// Run implements the command.
func (c *rotateTokenCommand) Run(out io.Writer) error {
	k, err := c.find(c.ID)
	if err != nil {
		return err
	}
	switch k.kind {
	case "token":
	case "key":
		return misusedf("id: %q is the id of a key, which is rotated on its host: osupgrade-agent worker rotate-key", c.ID)
	default:
		return misusedf("id: %q is the id of a %s; credentials %s gives it another secret", c.ID, k.kind, map[string]string{"user": "user", "approle": "secret-id"}[k.kind])
	}
	tokens, err := site.OpenTokens(c.Data)
	if err != nil {
		return err
	}
	var text string
	err = recorded(c.Data, v1.AuditRecord{Tenant: k.tenant, Action: "rotate", Object: "token/" + shortIDOf(k.id)}, func(r *v1.AuditRecord) error {
		if text, err = tokens.Rotate(k.id, time.Duration(c.Overlap), time.Now()); err == nil {
			r.Object, r.Detail = "token/"+shortIDOf(principal.ID(text)), "in place of "+r.Object
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot rotate %s: %w", c.ID, err)
	}
	_, err = fmt.Fprintln(out, text)
	return err
}
