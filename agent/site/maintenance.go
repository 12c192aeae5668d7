package site

import (
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/strongbox"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// certify makes a certificate for names of the site, and before it the site's own authority
// if there is none.
func (s *Site) certify(dir string, names []string) (v1.SiteCertificate, error) {
	files := Authority(dir)
	// Who works on the site itself reaches it by these.
	made, err := files.Make(slices.Concat(names, []string{"localhost", "127.0.0.1", "::1"}), time.Now(), s.box)
	if err != nil {
		return v1.SiteCertificate{}, err
	}
	ca, err := ReadCA(dir, "")
	return v1.SiteCertificate{NewAuthority: made, CA: string(ca), CAFile: files.CA, CertFile: files.Cert}, err
}

// resetStrongbox gives up what the strongbox of a site that does not run seals.
func resetStrongbox(dir string) ([]string, error) {
	return strongbox.Reset(StrongboxFolder(dir), time.Now())
}

// maintenance is what commands on the machine may ask of a site that runs.
func (s *Site) maintenance(dir string) api.Maintenance {
	return api.Maintenance{Certify: func(names []string) (v1.SiteCertificate, error) { return s.certify(dir, names) }}
}
