package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// operator is the common part of the commands that call the REST API for a
// tenant.
type operator struct {
	connection
	ofTenant
}

// siteOperator is the common part of those that manage who may do what in a tenant. On the
// machine of the site they need no token.
type siteOperator struct {
	siteAPI
	ofTenant
}

// ofTenant is the common part of commands that act on a tenant.
type ofTenant struct {
	Tenant string `help:"Tenant to act on." required:"" env:"OSUPGRADE_TENANT" complete:"tenants"`
	Output format `help:"Output format: text or json." default:"text" short:"o" placeholder:"text|json"`
	timeFlags
}

// listOutput is how a list is printed that is of no tenant.
type listOutput struct {
	Output format `help:"Output format: text, json or yaml." default:"text" short:"o" placeholder:"text|json|yaml"`
}

// Validate implements kong's hook.
func (o *listOutput) Validate() error { return o.Output.given() }

// format is how a command prints.
type format string

// The formats.
const (
	asText format = "text"
	asJSON format = "json"
	// asYAML is for the commands whose placeholder has it.
	asYAML format = "yaml"
	// asPrinted is --output without a value: what the scripts of a host have printed.
	asPrinted format = "printed"
)

// Decode implements kong's interface.
func (f *format) Decode(ctx *kong.DecodeContext) error {
	next := ctx.Scan.Peek()
	if text, _ := next.Value.(string); next.IsEOL() || strings.HasPrefix(text, "-") {
		*f = asPrinted
		return nil
	}
	var text string
	if err := ctx.Scan.PopValueInto("format", &text); err != nil {
		return err
	}
	formats := strings.Split(ctx.Value.Tag.PlaceHolder, "|")
	if *f = format(text); !slices.Contains(formats, text) {
		return fmt.Errorf("%.100q is not a format; use %s", text, strings.Join(formats, " or "))
	}
	return nil
}

// Validate implements kong's hook.
func (o *ofTenant) Validate() error { return o.Output.given() }

// given returns an error for a flag without a format.
func (f format) given() error {
	if f == asPrinted {
		return errors.New("--output: the format is missing; use text or json")
	}
	return nil
}

// connection says how to reach the REST API. The token comes from the
// environment or a file, never from an argument, which every user of the machine
// could read.
type connection struct {
	Context        string `help:"Context to use, as osupgrade-agent context list shows it (default: the current one)." env:"OSUPGRADE_CONTEXT" complete:"contexts" placeholder:"NAME"`
	Endpoint       string `help:"Address of the REST API (default: http://127.0.0.1:4646)." env:"OSUPGRADE_ENDPOINT" placeholder:"URL"`
	TokenFile      string `help:"File with the token (default: the variable OSUPGRADE_TOKEN)." type:"path" env:"OSUPGRADE_TOKEN_FILE" placeholder:"FILE"`
	ClientCertFile string `help:"Client certificate, PEM; without a token it says which user you are." name:"client-cert-file" type:"path" env:"OSUPGRADE_CLIENT_CERT_FILE" placeholder:"FILE"`
	ClientKeyFile  string `help:"Private key of --client-cert-file, PEM." name:"client-key-file" type:"path" env:"OSUPGRADE_CLIENT_KEY_FILE" placeholder:"FILE"`
	CAFile         string `help:"Certificates to trust, PEM (default: the system's)." name:"ca-file" type:"path" env:"OSUPGRADE_CA_CERT_FILE" placeholder:"FILE"`

	program version
	dial    dialer
	known   *sites
	// used is the context, contextErr why nobody knows which one.
	used       usedContext
	contextErr error
}

// address is where the API is: where an agent listens unless it is told otherwise.
func (o *connection) address() string {
	return cmp.Or(o.Endpoint, o.used.Endpoint, "http://127.0.0.1:4646")
}

// dialer makes the connections to the API; nil is the network.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// AfterApply implements kong's hook: it keeps the program's version for the
// User-Agent, and how the API is reached. A command that needs no site works whatever is
// wrong with the context.
func (o *connection) AfterApply(parsed *kong.Context, program version, dial dialer, known *sites) error {
	o.program, o.dial, o.known = program, dial, known
	o.used, o.contextErr = known.of(parsed)
	return nil
}

// errNoToken is the answer to a command that needs one.
var errNoToken = errors.New("there is no token; set OSUPGRADE_TOKEN or --token-file (export OSUPGRADE_TOKEN=$(osupgrade-agent login --user NAME) gets one), " +
	"or --client-cert-file and --client-key-file, or source the file dev.env of osupgrade-agent dev, or name the site once with osupgrade-agent context add, and choose it with context use")

// client connects as the operator.
func (o *connection) client() (*client.Client, error) {
	token := os.Getenv("OSUPGRADE_TOKEN")
	if strings.TrimSpace(token) != "" && o.TokenFile == "" {
		o.known.warnOfToken(o.used)
	}
	if o.TokenFile != "" {
		text, err := readSecret("token-file", o.TokenFile)
		if err != nil {
			return nil, err
		}
		token = string(text)
	}
	options, err := o.options()
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(token) == "" && o.ClientCertFile == "" {
		if token, err = o.known.token(o.used); err != nil {
			return nil, err
		}
		if token == "" && o.used.ClientCertFile == "" {
			return nil, errNoToken
		}
		if err := certify(&options, o.used.ClientCertFile, o.used.ClientKeyFile); err != nil {
			return nil, inContext(o.used.name, err)
		}
	}
	options.Token = token
	api, err := client.New(options)
	return api, misused(err)
}

// options returns how to reach the API, without a token.
func (o *connection) options() (client.Options, error) {
	options := client.Options{Endpoint: o.address(), UserAgent: "osupgrade-agent/" + string(o.program), Retries: 1, Dial: o.dial}
	if o.contextErr != nil {
		return options, o.contextErr
	}
	if file := cmp.Or(o.CAFile, o.used.CAFile); file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return options, fmt.Errorf("ca-file: %w", err)
		}
		options.CACertPEM = pem
	}
	return options, certify(&options, o.ClientCertFile, o.ClientKeyFile)
}

// certify adds the client certificate, if there is one.
func certify(options *client.Options, certFile, keyFile string) error {
	if certFile != "" {
		pem, err := os.ReadFile(certFile)
		if err != nil {
			return fmt.Errorf("client-cert-file: %w", err)
		}
		options.ClientCertPEM = pem
	}
	if keyFile != "" {
		pem, err := readSecret("client-key-file", keyFile)
		if err != nil {
			return err
		}
		options.ClientKeyPEM = pem
	}
	return nil
}

// show prints a value as JSON, or the text that write makes of it.
func (f format) show(out io.Writer, value any, write func(to *terminal) error) error {
	switch f {
	case asJSON:
		return printJSON(out, value)
	case asYAML:
		_, text, err := v1.Encode(document.YAML, value)
		if err == nil {
			_, err = out.Write(text)
		}
		return err
	}
	to := newTerminal(out)
	if err := write(to); err != nil {
		return err
	}
	return to.err
}

// say prints a value as JSON, or a sentence.
func (f format) say(out io.Writer, value any, sentence string, args ...any) error {
	return f.show(out, value, func(to *terminal) error {
		to.linef(sentence, args...)
		return nil
	})
}

// json prints a value as indented JSON.
func (o *ofTenant) json(out io.Writer, value any) error { return printJSON(out, value) }

func printJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}
