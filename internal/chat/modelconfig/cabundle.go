// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelconfig

import (
	"crypto/x509"
	"fmt"

	"parley.dev/parley/api/v1beta1"
)

// HoldsCertificates reports whether there is a certificate in the bundle, in PEM.
func HoldsCertificates(bundle []byte) bool { return x509.NewCertPool().AppendCertsFromPEM(bundle) }

// CABundleProblem is what keeps the CA bundle of a configuration from being used.
type CABundleProblem struct {
	// Key is where the bundle should be.
	Key v1beta1.ConfigMapKeyReference
	// Found is whether there is such a key; then it holds no certificate.
	Found bool
}

// CheckCABundle is what is wrong with the bundle at the key of a ConfigMap, if it was found; nil: nothing.
func CheckCABundle(ref *v1beta1.ConfigMapKeyReference, bundle []byte, found bool) *CABundleProblem {
	if found && HoldsCertificates(bundle) {
		return nil
	}
	return &CABundleProblem{Key: *ref, Found: found}
}

// String says it in a clause.
func (p *CABundleProblem) String() string {
	wrong := "does not exist"
	if p.Found {
		wrong = "holds no certificate in PEM"
	}
	return fmt.Sprintf("key %q of ConfigMap %s, which spec.caBundleFrom names, %s", p.Key.Key, p.Key.Name, wrong)
}
