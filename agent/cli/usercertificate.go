//go:build !worker

package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/authority"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// certificateCommand makes a client certificate for a user.
type certificateCommand struct {
	credentialFolder
	opener
	Tenant string `help:"Tenant of the user; * for all." required:""`
	Name   string `help:"Name of the user." required:""`
	Out    string `help:"Folder to write NAME.pem and NAME.key to; bring them to the user and keep the key nowhere else." required:"" type:"path" placeholder:"DIR"`
	Valid  length `help:"How long it is good, such as 90d or 12h; 397 days at most." default:"90d" placeholder:"TIME"`
}

// Help describes the command.
func (c *certificateCommand) Help() string {
	return `The certificate stands for the user instead of a token (--client-cert-file, --client-key-file), with the roles that
the user has then. It is signed by an authority for users alone, which is made with the first of them. A site takes
its certificates if serve is told to: --client-ca-file and --client-crl-file, which this command prints.
Removing the user ends what it is good for; osupgrade-agent credentials revoke revokes this one alone.`
}

// minCertificate is the shortest life of a certificate: a shorter one ends before it is there.
const minCertificate = time.Minute

// Run implements the command.
func (c *certificateCommand) Run(out io.Writer, person *console) error {
	if valid := time.Duration(c.Valid); valid < minCertificate || valid > authority.MaxUserLife {
		return misusedf("valid: %s is not from 1m to 397d", valid)
	}
	if err := errors.Join(c.exists(), readable(c.Data)); err != nil {
		return err
	}
	logins, err := site.OpenLogins(c.Data)
	if err != nil {
		return err
	}
	if _, err := logins.Users.Get(c.Tenant, c.Name); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("name: tenant %.100s has no user %.100q, and a certificate makes none; make the user with osupgrade-agent credentials user", c.Tenant, c.Name)
	} else if err != nil {
		return err
	}
	if info, err := os.Stat(c.Out); err != nil || !info.IsDir() {
		return fmt.Errorf("out: %s is no folder; make it, so that only you can read it", c.Out)
	}
	box := openBox(c.Data, nil)
	if err := c.open(box, person); err != nil {
		return err
	}
	return c.issue(out, site.UserAuthority(c.Data), box)
}

// issue makes the certificate and says where it is.
func (c *certificateCommand) issue(out io.Writer, users authority.Users, box authority.Strongbox) error {
	made, err := users.Make(time.Now(), box)
	if err != nil {
		return err
	}
	cert, key := filepath.Join(c.Out, c.Name+".pem"), filepath.Join(c.Out, c.Name+".key")
	var issued authority.Issued
	err = recorded(c.Data, v1.AuditRecord{Tenant: c.Tenant, Action: "create", Object: "certificate"}, func(r *v1.AuditRecord) error {
		if issued, err = users.Sign(c.Tenant, c.Name, time.Duration(c.Valid), time.Now(), box); err != nil {
			return err
		}
		r.Object, r.Detail = "certificate/"+issued.Serial, fmt.Sprintf("of user %s, until %s", c.Name, issued.NotAfter.Format(time.RFC3339))
		// The key goes first: without it the certificate is of no use.
		return errors.Join(durable.WriteFile(key, issued.Key, 0o600), durable.WriteFile(cert, issued.Cert, 0o644))
	})
	if err != nil {
		return err
	}
	if made {
		_, _ = fmt.Fprintf(out, "Made an authority for users: %s.\n", users.CA)
	}
	_, err = fmt.Fprintf(out, "Wrote the certificate of user %s of tenant %s to %s and its key to %s. It is good until %s, serial number %s.\n"+
		"A site takes it with serve --client-ca-file %s --client-crl-file %s.\n",
		c.Name, c.Tenant, cert, key, issued.NotAfter.Format(time.RFC3339), issued.Serial, users.CA, users.CRL)
	return err
}

// revokeCommand revokes a client certificate.
type revokeCommand struct {
	credentialFolder
	opener
	Serial string `arg:"" help:"Serial number of the certificate, as credentials certificate and the audit log have it; openssl x509 -noout -serial shows it, too."`
}

// Help describes the command.
func (c *revokeCommand) Help() string {
	return `It is for certificates of osupgrade-agent credentials certificate. A site that was started with --client-crl-file
refuses it within seconds, also on connections that are open.`
}

// Run implements the command.
func (c *revokeCommand) Run(out io.Writer, person *console) error {
	if err := errors.Join(c.exists(), readable(c.Data)); err != nil {
		return err
	}
	box := openBox(c.Data, nil)
	if err := c.open(box, person); err != nil {
		return err
	}
	serial := strings.ToLower(strings.TrimPrefix(c.Serial, "serial="))
	users := site.UserAuthority(c.Data)
	err := recorded(c.Data, v1.AuditRecord{Action: "revoke", Object: "certificate/" + shortenedSerial(serial)}, func(*v1.AuditRecord) error {
		return users.Revoke(serial, time.Now(), box)
	})
	if errors.Is(err, authority.ErrRevoked) {
		_, err = fmt.Fprintln(out, "The certificate was revoked before.")
		return err
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "Revoked the certificate: %s. A site that reads it (serve --client-crl-file) takes it up without a restart.\n", users.CRL)
	return err
}

// shortenedSerial is how much of what was typed as a serial number a record has.
func shortenedSerial(serial string) string { return serial[:min(len(serial), 40)] }
