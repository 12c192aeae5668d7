package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"go.yaml.in/yaml/v3"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/join"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/hostkey"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// workerCommands are what a host does: the worker itself, and what prepares it.
type workerCommands struct {
	Run       workerCommand    `cmd:"" default:"withargs" help:"Run the worker: upgrade this host when the site says so (the default)."`
	Join      joinCommand      `cmd:"" help:"Join a site: create a key for this host and write the configuration of its worker."`
	RotateKey rotateKeyCommand `cmd:"" help:"Replace the key of this host. The site revokes the old key once the worker has connected with the new one."`
	Accept    acceptCommand    `cmd:"" help:"Offer a rejected version again, or keep one that failed its checks."`
}

// joinCommand makes this machine a host of a site.
type joinCommand struct {
	Site      string `help:"Address of the site's REST API, such as https://site.example:4646." required:"" placeholder:"URL"`
	TokenFile string `help:"File with the join token that osupgrade-agent credentials join-token create printed; - is standard input." required:"" placeholder:"FILE"`
	Host      string `help:"Name of this host (default: the machine's host name)." env:"OSUPGRADE_HOST"`
	Config    string `help:"Configuration file to write; other settings in it stay. The key and the site's CA certificate are written next to it." default:"/etc/osupgrade/worker.yaml" type:"path" placeholder:"FILE"`
	CAFile    string `help:"Certificates to trust for the REST API, PEM (default: what the join token says, else the system's)." name:"ca-file" type:"path" placeholder:"FILE"`
	NATSURL   string `help:"Where to connect to the site, if not at the address that the site gives." name:"nats-url" placeholder:"URL"`
}

// Help describes the command.
func (c *joinCommand) Help() string {
	return `A token lets in one host, or as many as its maker said; each can use it once. It is never an argument, because every user of the machine can read arguments. If the
answer of the site is lost, run the command again: the site recognizes the key of this host. The private key never leaves this machine.`
}

// keyName and caName are the files beside the configuration of a worker.
const keyName, caName = "host.key", "site-ca.pem"

// Run implements the command.
func (c *joinCommand) Run(ctx context.Context, in io.Reader, out io.Writer, program version, dial dialer) error {
	secret, fingerprint, err := c.token(in)
	if err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return misused(err)
	}
	dir := filepath.Dir(c.Config)
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // everybody may read the configuration
		return fmt.Errorf("config: %w", err)
	}
	// The key goes first: if the answer is lost, the site knows this host by its key.
	keyFile := filepath.Join(dir, keyName)
	key, err := keepKey(keyFile)
	if err != nil {
		return err
	}
	joined, err := c.ask(ctx, key, client.Options{
		Endpoint: c.Site, Token: secret, UserAgent: "osupgrade-agent/" + string(program), Retries: 2, Dial: dial,
	}, fingerprint)
	if err != nil {
		return err
	}
	if err := c.write(joined, keyFile, filepath.Join(dir, caName)); err != nil {
		return fmt.Errorf("the site has let this host in, but its configuration cannot be written: %w; fix that and run the command again", err)
	}
	if joined.Waiting {
		return tellWaiting(out, joined, key, c.Config)
	}
	_, _ = fmt.Fprintf(out, "Host %s has joined tenant %s as %s.\nWrote %s and the key %s.\n", joined.Host, joined.Tenant, joined.Application, c.Config, keyFile)
	if err := connectOnce(joined, key, filepath.Join(dir, caName)); err != nil {
		if advice := otherName(err); advice != "" {
			return fmt.Errorf("the host has joined, but cannot connect to the log of the site at %s: %w%s; then start the worker", joined.NATSURL, err, advice)
		}
		return fmt.Errorf("the host has joined, but cannot connect to the log of the site at %s: %w; "+
			"let it through the firewall, or set nats-url in %s, and start the worker: it keeps trying", joined.NATSURL, err, c.Config)
	}
	_, err = fmt.Fprintf(out, "Connected to the log of the site at %s.\nNext: check the other settings in %s (osupgrade-agent worker run --help), then start the worker:\n\n    systemctl enable --now osupgrade-worker\n", joined.NATSURL, c.Config)
	return err
}

// tellWaiting says that the site lets the host in only once a person has approved it.
func tellWaiting(out io.Writer, joined v1.Joined, key nkeys.KeyPair, config string) error {
	public, err := key.PublicKey()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "Host %s waits for approval to join tenant %s as %s. Its key is\n\n    %s\n\n"+
		"On the site, let it in: osupgrade-agent approve-host %s --tenant %s\n"+
		"Wrote %s. You can start the worker now: it connects once the host is approved.\n\n    systemctl enable --now osupgrade-worker\n",
		joined.Host, joined.Tenant, joined.Application, public, joined.Host, joined.Tenant, config)
	return err
}

// maxToken bounds what is read of a token's file, in bytes.
const maxToken = 4096

// token reads the join token.
func (c *joinCommand) token(in io.Reader) (secret, fingerprint string, err error) {
	var text []byte
	if c.TokenFile == "-" {
		text, err = io.ReadAll(io.LimitReader(in, maxToken))
	} else {
		text, err = readSecret("token-file", c.TokenFile)
	}
	if err != nil {
		return "", "", err
	}
	if secret, fingerprint, err = join.Parse(string(text[:min(len(text), maxToken)])); err != nil {
		return "", "", fmt.Errorf("token-file: %w", err)
	}
	return secret, fingerprint, nil
}

// check validates the values.
func (c *joinCommand) check() (err error) {
	if c.Host == "" {
		if c.Host, err = os.Hostname(); err != nil {
			return fmt.Errorf("host: cannot read the machine's name: %w", err)
		}
	}
	if !names.ValidHost(c.Host) {
		return fmt.Errorf("host: %.200q is not a host name; use letters, digits, \"-\", \"_\" and \".\"", c.Host)
	}
	at, err := url.Parse(c.Site)
	if err != nil || at.Host == "" {
		return fmt.Errorf("site: %.200q is not an address; use one such as https://site.example:4646", c.Site)
	}
	if name := at.Hostname(); at.Scheme != "https" && name != "localhost" && name != "127.0.0.1" && name != "::1" {
		return fmt.Errorf("site: %.200q would carry the token over the network in plain text; use https://%s", c.Site, at.Host)
	}
	return nil
}

// ask lets the site let this host in.
func (c *joinCommand) ask(ctx context.Context, key nkeys.KeyPair, o client.Options, fingerprint string) (joined v1.Joined, err error) {
	switch {
	case c.CAFile != "":
		if o.CACertPEM, err = os.ReadFile(c.CAFile); err != nil {
			return joined, fmt.Errorf("ca-file: %w", err)
		}
	case fingerprint != "":
		if o.CACertPEM, err = client.Authority(ctx, c.Site, fingerprint, o); err != nil {
			return joined, err
		}
	}
	proof, err := hostkey.Prove(key, c.Host)
	if err != nil {
		return joined, err
	}
	public, err := key.PublicKey()
	if err != nil {
		return joined, err
	}
	api, err := client.New(o)
	if err != nil {
		return joined, misused(err)
	}
	defer api.Close()
	joined, err = api.Join(ctx, v1.Join{Host: c.Host, PublicKey: public, Proof: proof})
	joined.NATSURL = cmp.Or(c.NATSURL, joined.NATSURL)
	return joined, err
}

// keepKey returns the key in a file, which it makes if there is none.
func keepKey(file string) (nkeys.KeyPair, error) {
	seed, err := readSecret("key-file", file)
	if err == nil {
		key, err := nkeys.ParseDecoratedNKey(seed)
		if err != nil {
			return nil, fmt.Errorf("key-file: %s holds no key; remove it, and a new one is made", file)
		}
		return key, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	key, err := nkeys.CreateUser()
	if err != nil {
		return nil, err
	}
	if seed, err = key.Seed(); err != nil {
		return nil, err
	}
	return key, durable.WriteFile(file, append(seed, '\n'), 0o600)
}

// write writes the authority of the site and the configuration of the worker.
func (c *joinCommand) write(joined v1.Joined, keyFile, caFile string) error {
	settings := []setting{
		{"tenant", joined.Tenant},
		{"host", joined.Host},
		{"application", joined.Application},
		{"nats-url", joined.NATSURL},
		{"key-file", keyFile},
	}
	if joined.CA != "" {
		if err := durable.WriteFile(caFile, []byte(joined.CA), 0o644); err != nil {
			return err
		}
		settings = append(settings, setting{"nats-ca-file", caFile})
	}
	text, err := os.ReadFile(c.Config)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if text, err = withSettings(text, settings); err != nil {
		return fmt.Errorf("%s: %w", c.Config, err)
	}
	return durable.WriteFile(c.Config, text, 0o644)
}

// setting is a key of a config file with its value.
type setting struct{ key, value string }

// withSettings returns a config file with these settings. A line that has one of them
// is replaced, others stay as they are.
func withSettings(text []byte, settings []setting) ([]byte, error) {
	lines := strings.SplitAfter(string(text), "\n")
	if last := len(lines) - 1; lines[last] == "" {
		lines = lines[:last]
	} else {
		lines[last] += "\n"
	}
	for _, s := range settings {
		value, err := yaml.Marshal(map[string]string{s.key: s.value})
		if err != nil {
			return nil, err
		}
		line, has := string(value), regexp.MustCompile("^"+regexp.QuoteMeta(s.key)+`\s*:`)
		found := false
		for i := range lines {
			if has.MatchString(lines[i]) {
				lines[i], found = line, true
			}
		}
		if !found {
			lines = append(lines, line)
		}
	}
	joined := []byte(strings.Join(lines, ""))
	var check map[string]any
	if err := yaml.Unmarshal(joined, &check); err != nil {
		return nil, fmt.Errorf("it is not YAML with one key per line: %w", err)
	}
	return joined, nil
}

// connectLimit bounds the one try to connect to the log.
const connectLimit = 15 * time.Second

// connectOnce connects to the log as the worker will.
func connectOnce(joined v1.Joined, key nkeys.KeyPair, caFile string) error {
	public, err := key.PublicKey()
	if err != nil {
		return err
	}
	options := []nats.Option{
		nats.Name(joined.Tenant + "/" + joined.Host), nats.Nkey(public, key.Sign), nats.Timeout(connectLimit), nats.NoReconnect(),
	}
	if joined.CA != "" {
		options = append(options, nats.RootCAs(caFile))
	}
	nc, err := nats.Connect(joined.NATSURL, options...)
	if err != nil {
		return err
	}
	nc.Close()
	return nil
}

// rotateKeyCommand replaces the key of this host.
type rotateKeyCommand struct {
	Config string `help:"Configuration of the worker, which says where the key is." default:"/etc/osupgrade/worker.yaml" type:"path" placeholder:"FILE"`
}

// Run implements the command. A crash at any point is mended by running it again: the
// next key is kept beside the current one until the site has it.
func (c *rotateKeyCommand) Run(ctx context.Context, out io.Writer) error {
	w, err := readWorkerConfig(c.Config)
	if err != nil {
		return err
	}
	next := w.KeyFile + ".next"
	key, err := keepKey(next)
	if err != nil {
		return err
	}
	if err := w.rotate(ctx, key); err != nil {
		return fmt.Errorf("the key stays as it is: %w", err)
	}
	if err := os.Rename(next, w.KeyFile); err != nil {
		return fmt.Errorf("key-file: %w", err)
	}
	if err := durable.SyncFolder(filepath.Dir(w.KeyFile)); err != nil {
		return fmt.Errorf("key-file: %w", err)
	}
	_, err = fmt.Fprintf(out, "Host %s has another key in %s. Under systemd its worker switches to it once it is idle; otherwise restart the worker. "+
		"The site revokes the old key once the worker has connected with the new one.\n", w.Host, w.KeyFile)
	return err
}

// readWorkerConfig returns how a worker connects, as its configuration says. What else
// the worker needs may still be missing.
func readWorkerConfig(path string) (*workerCommand, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	defer func() { _ = file.Close() }()
	config, err := loadConfig(file)
	if err != nil {
		return nil, err
	}
	w := &workerCommand{NATSURL: nats.DefaultURL}
	for key, value := range map[string]*string{
		"tenant": &w.Tenant, "host": &w.Host, "nats-url": &w.NATSURL, "nats-ca-file": &w.NATSCAFile, "key-file": &w.KeyFile,
	} {
		if text, ok := config.document.Root().Text(key); ok && text != "" {
			*value = text
		}
	}
	if err := w.ownName(); err != nil {
		return nil, err
	}
	if w.KeyFile == "" {
		return nil, fmt.Errorf("config: %s has no key-file; join a site first: osupgrade-agent worker join", path)
	}
	return w, checkName("tenant", w.Tenant, "a tenant")
}

// rotate asks the site for another key, as the host that has the current one.
func (c *workerCommand) rotate(ctx context.Context, key nkeys.KeyPair) error {
	current, public, err := c.readKey()
	if err != nil {
		return err
	}
	options := []nats.Option{nats.Name(c.Tenant + "/" + c.Host), nats.Nkey(public, current.Sign), nats.Timeout(connectLimit), nats.NoReconnect()}
	if c.NATSCAFile != "" {
		options = append(options, nats.RootCAs(c.NATSCAFile))
	}
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	return hostkey.Rotate(ctx, c.Tenant, c.Host, key, func(more ...nats.Option) (*nats.Conn, error) {
		return nats.Connect(c.NATSURL, append(options, more...)...)
	})
}
