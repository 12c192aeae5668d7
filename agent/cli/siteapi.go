//go:build !worker

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// siteAPI is how the commands that manage a site reach its API: on its machine without a
// token, whether the site runs or not, and from elsewhere as all other commands.
type siteAPI struct {
	Data string `help:"The site's folder, on its machine (default: /var/lib/osupgrade; with a token, an endpoint or a context, the command calls the REST API instead)." type:"path" env:"OSUPGRADE_DATA"`
	connection

	// tokenFirst tells that a token counts more than the variable of the folder.
	tokenFirst bool
}

// defaultData is the folder of a site.
const defaultData = "/var/lib/osupgrade"

// siteClient calls the API of a site.
type siteClient struct {
	*client.Client

	// local tells that this is the machine of the site.
	local bool
	// stopped tells that no process runs it, and that this one holds the lock of its folder.
	stopped bool
	close   func()
}

func (c *siteClient) done() { c.close() }

// knows returns an error if the site does not serve a tenant. On its machine the API answers
// for any, because somebody may prepare a tenant that is served later: a command to which
// there is nothing to show asks for the name.
func (c *siteClient) knows(ctx context.Context, tenant string) error {
	if !c.local || tenant == access.AnyTenant {
		return nil
	}
	served, err := c.ServedTenants(ctx)
	if err != nil || slices.Contains(served, tenant) {
		return err
	}
	there := "it has no tenants yet"
	if len(served) > 0 {
		there = "use " + strings.Join(served, " or ")
	}
	return fmt.Errorf("tenant: the site does not serve %q; %s", tenant, there)
}

// elsewhere reports whether the command reaches the API over the network. Flags win over
// variables, and among variables the folder wins over the address.
func (c *siteAPI) elsewhere() bool {
	if c.addressTyped() {
		return true
	}
	proven := c.TokenFile != "" || c.ClientCertFile != "" || strings.TrimSpace(os.Getenv("OSUPGRADE_TOKEN")) != ""
	if c.tokenFirst && proven && !typedPath(c.Data, "OSUPGRADE_DATA") {
		return true
	}
	return c.Data == "" && (proven || c.used.name != "" || c.contextErr != nil || c.Endpoint != "")
}

// addressTyped reports whether a flag, and not a variable, names the address of the API or the
// credentials for it.
func (c *siteAPI) addressTyped() bool {
	return c.used.typed || c.Endpoint != os.Getenv(endpointVariable) ||
		typedPath(c.TokenFile, "OSUPGRADE_TOKEN_FILE") || typedPath(c.ClientCertFile, "OSUPGRADE_CLIENT_CERT_FILE")
}

// typedPath reports whether a path comes from a flag and not from its variable.
func typedPath(path, variable string) bool {
	if path == "" || os.Getenv(variable) == "" {
		return path != ""
	}
	known, err := filepath.Abs(os.Getenv(variable))
	return err != nil || path != known
}

// folder is the folder of the site.
func (c *siteAPI) folder() string { return cmp.Or(c.Data, defaultData) }

// place is where the site is, for people.
func (c *siteAPI) place() string {
	if c.elsewhere() {
		return c.address()
	}
	return c.folder()
}

// openByToken is open for commands that people use with their own token also on the machine of
// the site: the audit log then names them.
func (c *siteAPI) openByToken(ctx context.Context, log *slog.Logger) (*siteClient, error) {
	c.tokenFirst = true
	return c.open(ctx, log)
}

// open reaches the API of a site that there is.
func (c *siteAPI) open(ctx context.Context, log *slog.Logger) (*siteClient, error) {
	api, err := c.reach(ctx, log, func() error {
		_, err := os.Stat(filepath.Join(c.folder(), "credentials"))
		switch {
		case err == nil:
			return nil
		case c.Data == "":
			return fmt.Errorf("%w; on the machine of the site, root and the site's user need none: name its folder with --data (there is none in %s%s)", errNoToken, c.folder(), firstStart(c.folder()))
		default:
			return fmt.Errorf("data: %s is not the folder of a site: %w%s", c.folder(), err, firstStart(c.folder()))
		}
	})
	if c.Data == "" && errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("%w; on the machine of the site, only root and the site's user need none: %w", errNoToken, err)
	}
	return api, err
}

// reach reaches the API. Before this process prepares the folder of a site that does not run,
// it calls check.
func (c *siteAPI) reach(ctx context.Context, log *slog.Logger, check func() error) (*siteClient, error) {
	if c.addressTyped() && typedPath(c.Data, "OSUPGRADE_DATA") {
		return nil, misused(errors.New("--data names a site on this machine, but --context, --endpoint, --token-file and --client-cert-file are for a site on the network; use either --data or the others"))
	}
	if c.elsewhere() {
		api, err := c.client()
		if err != nil {
			return nil, err
		}
		return &siteClient{Client: api, close: api.Close}, nil
	}
	return localAPI(ctx, c.folder(), c.CAFile, string(c.program), log, check)
}

// localAPI reaches the site in a folder on this machine.
func localAPI(ctx context.Context, dir, caFile, program string, log *slog.Logger, check func() error) (*siteClient, error) {
	local, err := openLocal(ctx, dir, caFile, log, check)
	if err != nil {
		return nil, err
	}
	api, err := client.New(client.Options{Endpoint: "http://site", UserAgent: "osupgrade-agent/" + program, Retries: -1, Transport: local})
	if err != nil {
		return nil, errors.Join(err, local.Close())
	}
	return &siteClient{Client: api, local: true, stopped: local.Stopped, close: func() {
		api.Close()
		if err := local.Close(); err != nil {
			log.Warn("cannot close the folder of the site", "error", err)
		}
	}}, nil
}

func openLocal(ctx context.Context, dir, caFile string, log *slog.Logger, check func() error) (*site.Local, error) {
	return site.OpenLocal(ctx, site.LocalOptions{
		Dir: dir, Holder: "a command of osupgrade-agent", Log: slog.New(quiet{log.Handler()}),
		CAFile: cmp.Or(caFile, os.Getenv("OSUPGRADE_CA_FILE")), Credentials: os.Getenv(credentialsFolder), At: crashPoint("seal"),
		Prepare: func() error { return errors.Join(readable(dir), check()) },
	})
}

// quiet leaves out what a site that runs logs: whoever types a command sees its output.
type quiet struct{ slog.Handler }

// Enabled implements slog.Handler.
func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && q.Handler.Enabled(ctx, level)
}

// siteData is the folder of a site, for what is done on its machine alone.
type siteData struct {
	Data string `help:"The site's folder." default:"/var/lib/osupgrade" type:"path" env:"OSUPGRADE_DATA"`

	program version
}

// AfterApply implements kong's hook: it keeps the program's version for the User-Agent.
func (c *siteData) AfterApply(program version) error {
	c.program = program
	return nil
}

// open reaches the API of the site, whose folder is prepared if there is none yet.
func (c *siteData) open(ctx context.Context, log *slog.Logger) (*siteClient, error) {
	return c.openPrepared(ctx, log, func() error { return nil })
}

func (c *siteData) openPrepared(ctx context.Context, log *slog.Logger, check func() error) (*siteClient, error) {
	return localAPI(ctx, c.Data, "", string(c.program), log, check)
}

// record keeps an audit record of what a command has done to the site without its API.
func (c *siteData) record(ctx context.Context, log *slog.Logger, r v1.AuditRecord, ofEach bool) error {
	local, err := openLocal(ctx, c.Data, "", log, func() error { return nil })
	if err != nil {
		return err
	}
	return errors.Join(local.Record(ctx, r, ofEach), local.Close())
}

// siteFolder is the site that a credential is for. A mistyped one would be made, and the
// credential be good for nothing.
type siteFolder struct {
	siteAPI
	NewSite bool `help:"Prepare the folder for a site that has not run in it yet, or not with this tenant."`
}

// openFor reaches the API of a site that has run, with a tenant.
func (f *siteFolder) openFor(ctx context.Context, tenant string, log *slog.Logger) (*siteClient, error) {
	api, err := f.reach(ctx, log, f.hasRun)
	if err != nil || f.NewSite || !api.local || tenant == access.AnyTenant {
		return api, err
	}
	served, err := api.ServedTenants(ctx)
	switch {
	case err != nil:
	case len(served) == 0:
		err = fmt.Errorf("tenant: the site in %s has no tenants yet; make %q with osupgrade-agent tenant add, or %s", f.folder(), tenant, namedRight)
	case !slices.Contains(served, tenant):
		err = fmt.Errorf("tenant: the site in %s does not serve %q; use %s, or give --new-site and add it to the tenants of osupgrade-agent serve",
			f.folder(), tenant, strings.Join(served, " or "))
	}
	if err != nil {
		api.done()
		return nil, err
	}
	return api, nil
}

// firstStart says that a folder may be that of a site which starts for the first time: its
// folder is there a moment before its files. It is empty if there is no folder.
func firstStart(dir string) string {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return ""
	}
	return "; if its site is being started for the first time, try again in a moment"
}

// namedRight is what to do about a folder without a site.
const namedRight = "name the folder of osupgrade-agent serve --data, or give --new-site to prepare one that has not run yet"

// hasRun returns why no site has run in the folder.
func (f *siteFolder) hasRun() error {
	if f.NewSite {
		return nil
	}
	switch _, err := os.ReadDir(filepath.Join(f.folder(), "store", "jetstream")); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("data: no site has run in %s; %s%s", f.folder(), namedRight, firstStart(f.folder()))
	case err != nil:
		return fmt.Errorf("data: %w", err)
	}
	return nil
}

// readable tells whether the site could read what this user writes into its folder.
func readable(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return nil //nolint:nilerr // whoever uses the folder says what is wrong with it
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	if own := os.Geteuid(); !known || own != 0 || int(owner.Uid) == own {
		return nil
	}
	name := strconv.FormatUint(uint64(owner.Uid), 10)
	if u, err := user.LookupId(name); err == nil {
		name = u.Username
	}
	return fmt.Errorf("data: %s belongs to user %s, who could not read what root writes there; run it as sudo -u %s", dir, name, name)
}

// answered returns the error of a call as one of the command: what the API refuses is what was
// typed, in the words of the flags.
func answered(err error) error {
	if wrong, ok := errors.AsType[*client.NameError](err); ok {
		return misused(wrong)
	}
	refused, ok := errors.AsType[*client.Error](err)
	if !ok {
		return err
	}
	messages := make([]string, len(refused.Errors))
	for i, one := range refused.Errors {
		messages[i] = strings.Replace(one.Message, "token-policies:", "allow:", 1)
	}
	text := errors.New(strings.Join(messages, "; "))
	if refused.Status == http.StatusBadRequest {
		return misused(text)
	}
	return text
}
