// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// SigningKey is the key with which the API server signs the tokens of service accounts.
func (c *Cluster) SigningKey() (crypto.PrivateKey, error) {
	raw, err := os.ReadFile(filepath.Join(c.env.ControlPlane.GetAPIServer().CertDir, "sa-signer.key"))
	if err != nil {
		return nil, fmt.Errorf("reading the key: %w", err)
	}
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil, errors.New("the key is no PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("decoding the key: %w", err)
	}
	return key, nil
}
