package certificate

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"time"
)

// CheckTrusted returns why a file of certificates to trust is good for nothing at
// a time: it cannot be read, holds no certificate, or holds none that is valid.
func CheckTrusted(file string, now time.Time) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var why error
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err == nil {
			err = valid(c, now)
		}
		if err == nil {
			return nil
		}
		why = err
	}
	if why == nil {
		return fmt.Errorf("%s holds no certificate in PEM form", file)
	}
	return fmt.Errorf("%s holds no certificate that is valid now; the last one %w", file, why)
}
