package cli

import (
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// renewDays is how many days before its end a certificate has to be renewed.
const renewDays = 30

// adviseCertificates returns which certificates of the site have to be renewed.
func adviseCertificates(certificates []v1.Certificate) (todo []advice) {
	for _, c := range certificates {
		if c.DaysLeft >= renewDays {
			continue
		}
		what := "the certificate for the workers"
		switch c.Listener {
		case "api":
			what = "the certificate of the REST API"
		case "client-ca":
			what = "the authority of client certificates (client-ca-file)"
		}
		end := fmt.Sprintf("expires on %s, %s left", c.NotAfter.UTC().Format(time.RFC3339), text.Count(c.DaysLeft, "day is", "days are"))
		if c.DaysLeft < 0 {
			end = "expired on " + c.NotAfter.UTC().Format(time.RFC3339)
		}
		todo = append(todo, advice{"renew " + what + ", which " + end, ""})
	}
	return todo
}
