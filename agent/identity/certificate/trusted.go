package certificate

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"iter"
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
	return checkTrusted(file, text, now)
}

func checkTrusted(file string, text []byte, now time.Time) error {
	var why error
	for der := range blocks(text, "CERTIFICATE") {
		c, err := x509.ParseCertificate(der)
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

// blocks returns the content of the PEM blocks of a type.
func blocks(text []byte, kind string) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for {
			var block *pem.Block
			if block, text = pem.Decode(text); block == nil {
				return
			}
			if block.Type == kind && !yield(block.Bytes) {
				return
			}
		}
	}
}
