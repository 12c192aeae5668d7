package v1

import (
	"encoding/base64"
	"strconv"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
)

// Strongbox says how the strongbox of a site is opened.
type Strongbox struct {
	// Way is key-file, credential or passphrase; empty when nothing was sealed yet, or when
	// its file cannot be read.
	Way string `json:"way,omitempty"`
	// Opener names what opens it, for people.
	Opener string `json:"opener,omitempty"`
	// Sealed says why it would not open by itself at the next start; empty if it would.
	Sealed string `json:"sealed,omitempty"`
}

// Rewrap is the body of a request that changes how the strongbox is opened.
type Rewrap struct {
	// Way is key-file, credential or passphrase.
	Way string `json:"way"`
	// File is the path of a key file on the site's machine, which is created if it does not
	// exist; empty means a file in the folder of the site.
	File string `json:"file,omitempty"`
	// Name is the name of a systemd credential.
	Name string `json:"name,omitempty"`
	// Secret is the passphrase or the content of the credential, in base64.
	Secret string `json:"secret,omitempty"`
	// Current is what opens the strongbox now, in base64; it is needed if the site cannot
	// open it by itself.
	Current string `json:"current,omitempty"`
}

// DecodeRewrap reads the body of a request and validates it. No problem repeats a secret.
func DecodeRewrap(contentType string, body []byte) (Rewrap, error) {
	return decode(contentType, body, Rewrap{}, Rewrap.Validate)
}

// Validate returns what is wrong with the values, and nothing when all is right.
func (r Rewrap) Validate() Problems {
	return append(validateBase64("secret", r.Secret), validateBase64("current", r.Current)...)
}

// CurrentSecret is the body of a request that needs what opens the strongbox now.
type CurrentSecret struct {
	// Current is what opens the strongbox now, in base64; it is needed if the site cannot
	// open it by itself.
	Current string `json:"current,omitempty"`
}

// DecodeCurrentSecret reads the body of a request and validates it. No problem repeats a
// secret.
func DecodeCurrentSecret(contentType string, body []byte) (CurrentSecret, error) {
	return decode(contentType, body, CurrentSecret{}, CurrentSecret.Validate)
}

// Validate returns what is wrong with the value, and nothing when it is right.
func (c CurrentSecret) Validate() Problems { return validateBase64("current", c.Current) }

// StrongboxReset is the answer to the reset of a strongbox.
type StrongboxReset struct {
	// Aside lists the files that were set aside.
	Aside []string `json:"aside"`
}

// NewSiteCertificate is the body of a request for a certificate of the site's own authority.
type NewSiteCertificate struct {
	// Names are the names and addresses by which the site is reached.
	Names []string `json:"names"`
	// Current is what opens the strongbox now, in base64; it is needed if the site cannot
	// open it by itself.
	Current string `json:"current,omitempty"`
}

// DecodeNewSiteCertificate reads the body of a request and validates it. No problem repeats a
// secret.
func DecodeNewSiteCertificate(contentType string, body []byte) (NewSiteCertificate, error) {
	return decode(contentType, body, NewSiteCertificate{}, NewSiteCertificate.Validate)
}

// maxSiteNames bounds the names of a certificate.
const maxSiteNames = 100

// Validate returns what is wrong with the values, and nothing when all is right.
func (n NewSiteCertificate) Validate() Problems {
	found := validateBase64("current", n.Current)
	if len(n.Names) == 0 || len(n.Names) > maxSiteNames {
		found = append(found, document.Wrong("names", strconv.Itoa(len(n.Names)), "are too few or too many; give one at least"))
	}
	return found
}

// SiteCertificate is a certificate issued by the site's own authority.
type SiteCertificate struct {
	// NewAuthority means that the authority was created, too.
	NewAuthority bool `json:"new-authority,omitempty"`
	// CA is the certificate of the authority, PEM.
	CA string `json:"ca"`
	// CAFile and CertFile are the files of both on the site's machine.
	CAFile   string `json:"ca-file"`
	CertFile string `json:"cert-file"`
}

// maxEncoded bounds a secret in base64.
const maxEncoded = 64 << 10

func validateBase64(field, text string) Problems {
	if _, err := base64.StdEncoding.DecodeString(text); err != nil || len(text) > maxEncoded {
		return Problems{document.Wrong(field, "", "is too long or not base64")}
	}
	return nil
}
