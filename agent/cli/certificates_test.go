package cli

import (
	"testing"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestAdviseCertificates checks from when on a person is told to renew one.
func TestAdviseCertificates(t *testing.T) {
	t.Parallel()
	end := time.Date(2026, 12, 1, 1, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		certificate v1.Certificate
		want        string
	}{
		{v1.Certificate{Listener: "api", NotAfter: end, DaysLeft: 30}, ""},
		{v1.Certificate{Listener: "api", NotAfter: end, DaysLeft: 29}, "renew the certificate of the REST API, which expires on 2026-12-01T01:00:00Z, 29 days are left"},
		{v1.Certificate{Listener: "client-ca", NotAfter: end, DaysLeft: 2}, "renew the authority of client certificates (client-ca-file), which expires on 2026-12-01T01:00:00Z, 2 days are left"},
		{v1.Certificate{Listener: "nats", NotAfter: end, DaysLeft: 1}, "renew the certificate for the workers, which expires on 2026-12-01T01:00:00Z, 1 day is left"},
		{v1.Certificate{Listener: "nats", NotAfter: end, DaysLeft: 0}, "renew the certificate for the workers, which expires on 2026-12-01T01:00:00Z, 0 days are left"},
		{v1.Certificate{Listener: "nats", NotAfter: end, DaysLeft: -1}, "renew the certificate for the workers, which expired on 2026-12-01T01:00:00Z"},
	} {
		got := ""
		for _, a := range adviseCertificates([]v1.Certificate{c.certificate}) {
			got += a.what
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c.certificate, got, c.want)
		}
	}
}
