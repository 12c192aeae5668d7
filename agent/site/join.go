package site

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/authority"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/join"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/hostkey"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/natsd"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Authority returns the files of the authority that a site in dir made itself.
func Authority(dir string) authority.Files { return authority.In(filepath.Join(dir, "tls")) }

// ReadCA returns the certificates that hosts are to trust for a site in dir: those of
// a file, or else those of the authority that the site made itself; nil if there are
// neither.
func ReadCA(dir, file string) ([]byte, error) {
	if file == "" {
		ca, err := os.ReadFile(Authority(dir).CA)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return ca, err
	}
	ca, err := os.ReadFile(file)
	if err == nil {
		_, err = v1.Fingerprint(ca)
	}
	if err != nil {
		return nil, fmt.Errorf("ca-file: %s: %w", file, err)
	}
	return ca, nil
}

// joining returns what the API needs to let hosts join.
func (s *Site) joining(o Options) (*api.Joining, error) {
	tokens := s.Joins
	if _, err := ReadCA(o.Dir, o.CAFile); err != nil {
		return nil, err
	}
	keys := joinKeys{s.Hosts}
	return &api.Joining{
		Tokens: tokens, CA: func() ([]byte, error) { return ReadCA(o.Dir, o.CAFile) },
		Join: func(secret string, r v1.Join, from string, now time.Time) (join.Joined, error) {
			if err := hostkey.Proven(r.PublicKey, r.Host, r.Proof); err != nil {
				return join.Joined{}, fmt.Errorf("%w: %w", api.ErrRefusedKey, err)
			}
			return tokens.Join(secret, r, from, now, keys)
		},
		Decide:  func(v join.Verdict, now time.Time) (join.Waiting, error) { return tokens.Decide(v, now, keys) },
		NATSURL: func(apiHost string) (string, error) { return o.natsURL(apiHost, s.server.Address()) },
	}, nil
}

// natsURL returns where a host reaches the log that reached the API by a name.
func (o Options) natsURL(apiHost, address string) (string, error) {
	if address == "" {
		return "", errors.New("no host can join this site: its log is for simulated hosts in the site's own process; run osupgrade-agent serve")
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	own, err := loopback(address)
	if err != nil {
		return "", err
	}
	calls, err := loopback(net.JoinHostPort(apiHost, port))
	if err != nil {
		return "", err
	}
	if own && !calls {
		return "", fmt.Errorf("the log of the site listens on %s, where no other machine reaches it; set nats-listen, such as 0.0.0.0:%s, and restart the site", address, port)
	}
	scheme := "nats"
	if o.NATS.CertFile != "" {
		scheme = "tls"
	}
	return scheme + "://" + net.JoinHostPort(apiHost, port), nil
}

// mostTold is how many hosts of a tenant that wait at once are told of: they must not crowd out
// all other news.
const mostTold = 20

// tellWaiting tells the people of each tenant which hosts wait for approval. The news of a host has
// one id, so it is told once, also by a site that was killed in between.
func (s *Site) tellWaiting(ctx context.Context) {
	all, err := s.Joins.Waiting(time.Now())
	if err != nil {
		s.log.Warn("cannot tell which hosts wait for approval", "error", err)
		return
	}
	byTenant := map[string][]v1.WaitingHost{}
	for _, w := range all {
		if tenant := w.Token.Tenant; len(byTenant[tenant]) < mostTold {
			byTenant[tenant] = append(byTenant[tenant], w.Shown())
		}
	}
	for tenant, hosts := range byTenant {
		if err := s.tenants.tellWaiting(ctx, tenant, hosts); err != nil && ctx.Err() == nil {
			s.log.Warn("cannot tell which hosts wait for approval", "tenant", tenant, "error", err)
		}
	}
}

// joinKeys are the keys of hosts for a host that joins. A refusal is told to the host.
type joinKeys struct{ hosts *natsd.Hosts }

func (k joinKeys) Registrable(public string, t join.Token, host string) error {
	id := natsd.Identity{Tenant: t.Tenant, Host: host}
	alike, err := k.hosts.Alike(id)
	if err != nil {
		return err
	}
	if alike != "" {
		return fmt.Errorf("%w: host %s of tenant %s has a name that differs only in case; give another name with --host", api.ErrRefusedKey, alike, t.Tenant)
	}
	return refusedKey(k.hosts.Registrable(public, id, t.Replace))
}

func (k joinKeys) Register(public string, t join.Token, host string) error {
	return refusedKey(k.hosts.RegisterLabelled(public, natsd.Identity{Tenant: t.Tenant, Host: host}, t.Labels, t.Replace))
}

func refusedKey(err error) error {
	switch {
	case errors.Is(err, natsd.ErrSecondKey):
		return fmt.Errorf("%w: %w; withdraw that with osupgrade-agent credentials remove, or make a join token with --replace", api.ErrRefusedKey, err)
	case errors.Is(err, natsd.ErrOthersKey):
		return fmt.Errorf("%w: %w; remove the file of the key on this host and join again, for a key of its own", api.ErrRefusedKey, err)
	}
	return err
}

// hostKeys are the keys of hosts as the API wants them.
type hostKeys struct{ *natsd.Hosts }

// Register implements api.HostKeys.
func (k hostKeys) Register(public, tenant, host string, replace bool) error {
	err := k.Hosts.Register(public, natsd.Identity{Tenant: tenant, Host: host}, replace)
	if errors.Is(err, natsd.ErrSecondKey) {
		return api.RefusedKeyError{Why: err}
	}
	return refusedKey(err)
}

// List implements api.HostKeys.
func (k hostKeys) List() ([]api.HostKey, error) {
	all, err := k.Hosts.List()
	keys := make([]api.HostKey, len(all))
	for i, h := range all {
		keys[i] = api.HostKey{Public: h.Public, Tenant: h.Tenant, Host: h.Host, Made: h.Made, Damage: h.Damage}
	}
	return keys, err
}

func (k joinKeys) Registered(public, tenant, host string) (bool, error) {
	id, known, err := k.hosts.Find(public)
	return known && id == natsd.Identity{Tenant: tenant, Host: host}, err
}

// ownCertificates sets the certificates of the endpoints that have none to the one
// that init has made, if it has.
func (o Options) ownCertificates() Options {
	files := Authority(o.Dir)
	if !files.Made() {
		return o
	}
	for _, e := range []*Endpoint{&o.API, &o.NATS} {
		if *e != (Endpoint{}) && e.CertFile == "" && e.KeyFile == "" {
			e.CertFile, e.KeyFile = files.Cert, files.Key
		}
	}
	return o
}

// renewEach is how often it is looked whether the own certificate is about to end.
const renewEach = 12 * time.Hour

// renewOwn seals the key of the own authority with the newest key, and renews the certificate that init has
// made until the site stops. The listeners take up the renewed files. A sealed site waits
// with both.
func (s *Site) renewOwn(running context.Context, dir string) {
	files := Authority(dir)
	select {
	case <-running.Done():
		return
	case <-s.box.Opened():
	}
	looks := time.NewTicker(renewEach)
	defer looks.Stop()
	for {
		switch sealed, err := files.Protect(s.box); {
		case err != nil:
			s.log.Warn("the key of the site's authority is not sealed as it should be", "error", err)
		case sealed:
			s.log.Info("sealed the key of the site's authority with the newest key", "key", files.CAKey)
		}
		if files.Made() {
			s.renew(files)
		}
		select {
		case <-running.Done():
			return
		case <-looks.C:
		}
	}
}

// renew renews the certificate of the site, if it is about to end.
func (s *Site) renew(files authority.Files) {
	switch renewed, err := files.Renew(time.Now(), s.box); {
	case err != nil:
		s.log.Warn("cannot renew the certificate of the site; trying again", "error", err)
	case renewed:
		s.log.Info("renewed the certificate of the site", "certificate", files.Cert)
	}
}
