package cli

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/text"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// webhookCommand are the commands for the receivers of news.
type webhookCommand struct {
	List   listWebhooksCommand  `cmd:"" help:"List the webhooks, and how they fare."`
	Add    addWebhookCommand    `cmd:"" help:"Declare a receiver of news, or change one. A new secret is printed once."`
	Remove removeWebhookCommand `cmd:"" help:"Remove a webhook, with what is still to be sent to it."`
	Test   testWebhookCommand   `cmd:"" help:"Send a test to a webhook and say what came of it."`
	Dead   deadWebhookCommand   `cmd:"" help:"List the news that a webhook has given up to send."`
	Resend resendWebhookCommand `cmd:"" help:"Send news again that a webhook has given up."`
}

// webhookName is the argument of most of them.
type webhookName struct {
	operator
	Name string `arg:"" help:"Name of the webhook, as webhook list shows it."`
}

// listWebhooksCommand lists the webhooks.
type listWebhooksCommand struct{ operator }

// Run implements the command.
func (c *listWebhooksCommand) Run(ctx context.Context, out io.Writer) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	declared, err := api.Webhooks(ctx, c.Tenant)
	if err != nil {
		return err
	}
	states, err := api.WebhookStates(ctx, c.Tenant)
	if err != nil {
		return err
	}
	if c.Output == asJSON {
		return c.json(out, struct {
			Webhooks []v1.WebhookInfo  `json:"webhooks"`
			States   []v1.WebhookState `json:"states"`
		}{declared, states})
	}
	if len(declared) == 0 && len(states) == 0 {
		_, err = fmt.Fprintf(out, "Tenant %s has no webhooks. To declare one: osupgrade-agent webhook add NAME --url https://…\n", c.Tenant)
		return err
	}
	byName := map[string]v1.WebhookState{}
	for _, s := range states {
		byName[s.Name] = s
	}
	named := map[string]bool{}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "NAME\tSTATUS\tQUEUED\tDELIVERED\tDEAD\tNEWS\tURL")
	var notes []string
	for _, w := range declared {
		s := byName[w.Name]
		named[w.Name] = true
		kinds := "all"
		if len(w.News) > 0 {
			kinds = strings.Join(w.News, ",")
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%s\t%s\n", w.Name, s.Status, s.Queued, s.Delivered, s.DeadCount, kinds, w.URL)
		notes = append(notes, webhookNotes(s)...)
	}
	for _, s := range states {
		if !named[s.Name] {
			_, _ = fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\tall\ta script of the site\n", s.Name, s.Status, s.Queued, s.Delivered, s.DeadCount)
			notes = append(notes, webhookNotes(s)...)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for i, note := range notes {
		if i == 0 {
			_, _ = fmt.Fprintln(out)
		}
		_, _ = fmt.Fprintln(out, note)
	}
	return nil
}

// webhookNotes say what is wrong with a webhook, and what to do.
func webhookNotes(s v1.WebhookState) (notes []string) {
	switch {
	case s.Status == v1.WebhookStopped:
		notes = append(notes, fmt.Sprintf("%s: the receiver is gone (410). To go on: osupgrade-agent webhook add %s --url …", s.Name, s.Name))
	case s.Error != "" && s.NextTry != nil:
		notes = append(notes, fmt.Sprintf("%s: %s; tried %s, again at %s", s.Name, s.Error, text.Count(s.Tries, "time", "times"), s.NextTry.UTC().Format(time.RFC3339)))
	}
	if s.DeadCount > 0 {
		notes = append(notes, fmt.Sprintf("%s: %s given up. To see them: osupgrade-agent webhook dead %s", s.Name, text.Count(s.DeadCount, "news was", "news were"), s.Name))
	}
	if s.Dropped > 0 {
		notes = append(notes, fmt.Sprintf("%s: %d dropped, because the receiver was down for too long", s.Name, s.Dropped))
	}
	return notes
}

// addWebhookCommand declares a webhook.
type addWebhookCommand struct {
	operator
	Name        string   `arg:"" help:"Name of the webhook."`
	URL         string   `name:"url" help:"Where news are sent: https, or http to 127.0.0.1." required:"" placeholder:"URL"`
	News        []string `help:"Types of news to send (default: all): run.opened, stage.done, host.failed, run.blocked, run.waiting, run.finished, window.missed." placeholder:"TYPE"`
	Description string   `help:"What it is for." placeholder:"TEXT"`
	SecretFile  string   `help:"File with the secret, whsec_ and base64 (default: that which is there, or a new one, which is printed)." type:"path" placeholder:"FILE"`
	NewSecret   bool     `help:"Make a new secret for a webhook that is there, and print it."`
	Disabled    bool     `help:"Hold the news up until the webhook is added again without this."`
}

// secretSize is the size of a secret that is made, in bytes.
const secretSize = 32

// Run implements the command.
func (c *addWebhookCommand) Run(ctx context.Context, out io.Writer) error {
	w := v1.Webhook{URL: c.URL, News: c.News, Description: c.Description, Disabled: c.Disabled}
	if c.SecretFile != "" && c.NewSecret {
		return misused(errors.New("--secret-file and --new-secret exclude each other"))
	}
	if c.SecretFile != "" {
		secret, err := readSecret("secret-file", c.SecretFile)
		if err != nil {
			return err
		}
		w.Secret = strings.TrimSpace(string(secret))
	}
	if wrong := w.Validate(); len(wrong) > 0 {
		return misused(wrong)
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	_, err = api.Webhook(ctx, c.Tenant, c.Name)
	isNew := client.Missing(err)
	if err != nil && !isNew {
		return err
	}
	made := false
	var when client.Precondition
	if isNew {
		when.IfNoneMatch = "*"
	}
	if w.Secret == "" && (isNew || c.NewSecret) {
		random := make([]byte, secretSize)
		if _, err := rand.Read(random); err != nil {
			return err
		}
		w.Secret, made = v1.WebhookSecretPrefix+base64.StdEncoding.EncodeToString(random), true
	}
	if err := api.PutWebhook(ctx, c.Tenant, c.Name, w, when); err != nil {
		return err
	}
	if c.Output == asJSON {
		shown := struct {
			Name   string `json:"name"`
			Secret string `json:"secret,omitempty"`
		}{Name: c.Name}
		if made {
			shown.Secret = w.Secret
		}
		return c.json(out, shown)
	}
	did := "changed"
	if isNew {
		did = "added"
	}
	_, _ = fmt.Fprintf(out, "Webhook %s of tenant %s is %s.\n", c.Name, c.Tenant, did)
	if made {
		_, _ = fmt.Fprintf(out, "The receiver checks the signature with this secret, which is not shown again:\n%s\n", w.Secret)
	}
	_, err = fmt.Fprintf(out, "To try it: osupgrade-agent webhook test %s\n", c.Name)
	return err
}

// removeWebhookCommand removes a webhook.
type removeWebhookCommand struct{ webhookName }

// Run implements the command.
func (c *removeWebhookCommand) Run(ctx context.Context, out io.Writer) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	if err := api.DeleteWebhook(ctx, c.Tenant, c.Name); err != nil {
		return err
	}
	if c.Output == asJSON {
		return c.json(out, map[string]string{"tenant": c.Tenant, "removed": c.Name})
	}
	_, err = fmt.Fprintf(out, "Webhook %s of tenant %s is removed.\n", c.Name, c.Tenant)
	return err
}

// testWebhookCommand sends a test.
type testWebhookCommand struct{ webhookName }

// Run implements the command.
func (c *testWebhookCommand) Run(ctx context.Context, out io.Writer) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	test, err := api.TestWebhook(ctx, c.Tenant, c.Name)
	if err != nil {
		return err
	}
	if c.Output == asJSON {
		err = c.json(out, test)
	} else if test.Delivered {
		_, err = fmt.Fprintf(out, "The receiver of webhook %s has accepted test %s within %d ms.\n", c.Name, test.ID, test.Milliseconds)
	}
	if err == nil && !test.Delivered {
		err = fmt.Errorf("webhook %s: the test was not accepted: %s", c.Name, test.Error)
	}
	return err
}

// deadWebhookCommand lists dead letters.
type deadWebhookCommand struct{ webhookName }

// Run implements the command.
func (c *deadWebhookCommand) Run(ctx context.Context, out io.Writer) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	state, err := api.WebhookState(ctx, c.Tenant, c.Name)
	if err != nil {
		return err
	}
	if c.Output == asJSON {
		return c.json(out, append([]v1.DeadLetter{}, state.Dead...))
	}
	if len(state.Dead) == 0 {
		_, err = fmt.Fprintf(out, "Webhook %s has given up no news.\n", c.Name)
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "ID\tGIVEN UP\tTRIES\tERROR\tNEWS")
	for _, d := range state.Dead {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\n", d.News.ID, d.At.UTC().Format(time.RFC3339), d.Tries, d.Error, d.News.Data.Text)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "\nTo send them again: osupgrade-agent webhook resend %s\n", c.Name)
	return err
}

// resendWebhookCommand sends dead letters again.
type resendWebhookCommand struct {
	webhookName
	IDs []string `arg:"" optional:"" name:"id" help:"Ids of the news, as webhook dead shows them (default: all)."`
}

// Run implements the command.
func (c *resendWebhookCommand) Run(ctx context.Context, out io.Writer) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	resent, err := api.ResendWebhook(ctx, c.Tenant, c.Name, c.IDs)
	if err != nil {
		return err
	}
	if c.Output == asJSON {
		err = c.json(out, resent)
	} else {
		_, err = fmt.Fprintf(out, "Webhook %s: %d accepted, %d left.\n", c.Name, resent.Delivered, resent.Left)
	}
	if err == nil && resent.Error != "" {
		err = fmt.Errorf("webhook %s: not all were accepted: %s", c.Name, resent.Error)
	}
	return err
}
