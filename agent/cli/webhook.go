package cli

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// webhookCommand are the commands for the receivers of news.
type webhookCommand struct {
	List   listWebhooksCommand  `cmd:"" help:"List the webhooks and their state."`
	Add    addWebhookCommand    `cmd:"" help:"Add or change a webhook. A new secret is printed once."`
	Test   testWebhookCommand   `cmd:"" help:"Send a test and report the result."`
	Dead   deadWebhookCommand   `cmd:"" help:"List what a webhook has given up sending."`
	Resend resendWebhookCommand `cmd:"" help:"Send again what a webhook has given up sending."`
}

// webhookName is the argument of most of them.
type webhookName struct {
	operator
	Name string `arg:"" help:"Name of the webhook, as webhook list shows it." complete:"webhooks"`
}

// unknown returns an error of a call; if there is no such webhook, with the names of those there
// are.
func (c *webhookName) unknown(ctx context.Context, api *client.Client, err error) error {
	if !client.Missing(err) {
		return err
	}
	declared, listErr := api.Webhooks(ctx, c.Tenant)
	states, stateErr := api.WebhookStates(ctx, c.Tenant)
	if listErr != nil || stateErr != nil {
		return err
	}
	var names []string
	for _, w := range declared {
		names = append(names, w.Name)
	}
	for _, s := range states {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	if names = slices.Compact(names); slices.Contains(names, c.Name) {
		return err // What is missing is something else.
	}
	there := "it has none; to declare one: osupgrade-agent webhook add NAME --url https://…"
	if len(names) > 0 {
		there = "it has " + text.ListOf(names, len(names), mostNames)
	}
	return fmt.Errorf("tenant %q has no webhook %s; %s", c.Tenant, c.Name, there)
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
	all := struct {
		Webhooks []v1.WebhookInfo  `json:"webhooks"`
		States   []v1.WebhookState `json:"states"`
	}{declared, states}
	return c.Output.show(out, all, func(to *terminal) error {
		if len(declared) == 0 && len(states) == 0 {
			to.linef("Tenant %s has no webhooks. To declare one: osupgrade-agent webhook add NAME --url https://…", c.Tenant)
		} else {
			listWebhooks(to, c.format(), declared, states)
		}
		return nil
	})
}

// listWebhooks prints the webhooks, and below them what is wrong with them.
func listWebhooks(to *terminal, at timeFormat, declared []v1.WebhookInfo, states []v1.WebhookState) {
	byName := map[string]v1.WebhookState{}
	for _, s := range states {
		byName[s.Name] = s
	}
	named := map[string]bool{}
	var t table
	t.add("NAME", "STATUS", "QUEUED", "DELIVERED", "DEAD", "NEWS", "URL")
	var notes []string
	add := func(name string, s v1.WebhookState, kinds, url string) {
		t.add(name, s.Status, fmt.Sprint(s.Queued), fmt.Sprint(s.Delivered), fmt.Sprint(s.DeadCount), kinds, url)
		notes = append(notes, webhookNotes(at, s)...)
	}
	for _, w := range declared {
		named[w.Name] = true
		kinds := "all"
		if len(w.News) > 0 {
			kinds = strings.Join(w.News, ",")
		}
		add(w.Name, byName[w.Name], kinds, w.URL)
	}
	for _, s := range states {
		if !named[s.Name] {
			add(s.Name, s, "all", "a script of the site")
		}
	}
	t.print(to)
	for i, note := range notes {
		if i == 0 {
			to.line("")
		}
		to.line(note)
	}
}

// webhookNotes say what is wrong with a webhook, and what to do.
func webhookNotes(at timeFormat, s v1.WebhookState) (notes []string) {
	switch {
	case s.Status == v1.WebhookStopped:
		notes = append(notes, fmt.Sprintf("%s: the receiver is gone (410). To continue: osupgrade-agent webhook add %s --url …", s.Name, s.Name))
	case s.Error != "" && s.NextTry != nil:
		notes = append(notes, fmt.Sprintf("%s: %s; tried %s, again at %s", s.Name, s.Error, text.Count(s.Tries, "time", "times"), at.at(*s.NextTry)))
	}
	if s.DeadCount > 0 {
		notes = append(notes, fmt.Sprintf("%s: gave up on %s. To see them: osupgrade-agent webhook dead %s", s.Name, text.Count(s.DeadCount, "message", "messages"), s.Name))
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
	URL         string   `name:"url" help:"Where to send news: https, or http on loopback. An address of the site's own machine must be allowed by serve --allow-local." required:"" placeholder:"URL"`
	News        []string `help:"Types of news to send (default: all): run.opened, stage.done, host.failed, run.blocked, run.overdue, run.waiting, run.differing, run.finished, window.missed, window.up-to-date, window.skipped, calendar.failing, calendar.recovered, calendar.emptied, host.waiting." placeholder:"TYPE"`
	Description string   `help:"What it is for." placeholder:"TEXT"`
	SecretFile  string   `help:"File with the secret, whsec_ and base64, or - to ask at the terminal or read standard input (default: the present one, or a new one, which is printed)." type:"path" placeholder:"FILE"`
	NewSecret   bool     `help:"Create and print a new secret for an existing webhook."`
	Disabled    bool     `help:"Queue news until you add the webhook again without --disabled."`
}

// secretSize is the size of a secret that is made, in bytes.
const secretSize = 32

// Run implements the command.
func (c *addWebhookCommand) Run(ctx context.Context, out io.Writer, person *console) error {
	w := v1.Webhook{URL: c.URL, News: c.News, Description: c.Description, Disabled: c.Disabled}
	if c.SecretFile != "" && c.NewSecret {
		return misused(errors.New("give --secret-file or --new-secret, not both"))
	}
	if c.SecretFile != "" {
		secret, err := readPassphrase(fmt.Sprintf("secret of webhook %.63s", c.Name), "secret-file", c.SecretFile, person)
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
	shown := struct {
		Name   string `json:"name"`
		Secret string `json:"secret,omitempty"`
	}{Name: c.Name}
	if made {
		shown.Secret = w.Secret
	}
	did := "changed"
	if isNew {
		did = "added"
	}
	return c.Output.show(out, shown, func(to *terminal) error {
		to.linef("Webhook %s of tenant %s is %s.", c.Name, c.Tenant, did)
		if made {
			to.linef("The receiver checks the signature with this secret, which is not shown again:\n%s", w.Secret)
		}
		to.linef("To try it: osupgrade-agent webhook test %s", c.Name)
		return nil
	})
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
		return c.unknown(ctx, api, err)
	}
	err = c.Output.show(out, test, func(to *terminal) error {
		if test.Delivered {
			to.linef("The receiver of webhook %s has accepted test %s within %d ms.", c.Name, test.ID, test.Milliseconds)
		}
		return nil
	})
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
		return c.unknown(ctx, api, err)
	}
	return c.Output.show(out, append([]v1.DeadLetter{}, state.Dead...), func(to *terminal) error {
		if len(state.Dead) == 0 {
			to.linef("Webhook %s has not given up on any news.", c.Name)
			return nil
		}
		var t table
		t.add("ID", "GIVEN UP", "TRIES", "ERROR", "NEWS")
		for _, d := range state.Dead {
			t.add(d.News.ID, c.format().at(d.At), fmt.Sprint(d.Tries), d.Error, d.News.Data.Text)
		}
		t.print(to)
		to.linef("\nTo send them again: osupgrade-agent webhook resend %s", c.Name)
		return nil
	})
}

// resendWebhookCommand sends dead letters again.
type resendWebhookCommand struct {
	webhookName
	IDs []string `arg:"" optional:"" name:"id" help:"Ids to send again, as webhook dead shows them (default: all)."`
}

// Run implements the command.
func (c *resendWebhookCommand) Run(ctx context.Context, out io.Writer) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	resent, err := api.ResendWebhook(ctx, c.Tenant, c.Name, c.IDs)
	if err != nil {
		return c.unknown(ctx, api, err)
	}
	err = c.Output.say(out, resent, "Webhook %s: %d accepted, %d left.", c.Name, resent.Delivered, resent.Left)
	if err == nil && resent.Error != "" {
		err = fmt.Errorf("webhook %s: not all were accepted: %s", c.Name, resent.Error)
	}
	return err
}
