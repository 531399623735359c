// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// checksums is the file with the SHA-256 of all others, which "sha256sum --check" reads. Its signature is as "cosign
// verify-blob --key" takes it.
const checksums = "SHA256SUMS"

// writeChecksums writes the checksums of all files and, with a key, their signature and the public key.
func (o *options) writeChecksums() error {
	var lines bytes.Buffer
	err := filepath.WalkDir(o.out, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(o.out, path)
		fmt.Fprintf(&lines, "%x  %s\n", sha256.Sum256(content), filepath.ToSlash(name))
		return err
	})
	if err != nil {
		return err
	}
	if err := o.write(checksums, lines.Bytes()); err != nil || o.key == "" {
		return err
	}
	key, err := readKey(o.key)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(lines.Bytes())
	signature, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	if err != nil {
		return fmt.Errorf("signing the checksums: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("encoding the public key: %w", err)
	}
	return errors.Join(o.write(checksums+".sig", []byte(base64.StdEncoding.EncodeToString(signature))),
		o.write("parley.pub", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})))
}

// readKey reads a private key in the forms of openssl: PKCS #8, or SEC 1.
func readKey(file string) (*ecdsa.PrivateKey, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the key: %w", err)
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		var key any
		switch block.Type {
		case "PRIVATE KEY":
			key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		case "EC PRIVATE KEY":
			key, err = x509.ParseECPrivateKey(block.Bytes)
		default: // openssl writes the parameters of the curve before the key.
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("decoding the key in %s: %w", file, err)
		}
		if private, ok := key.(*ecdsa.PrivateKey); ok && private.Curve == elliptic.P256() {
			return private, nil
		}
		return nil, fmt.Errorf("the key in %s is not an ECDSA key of the curve P-256, which cosign verifies", file)
	}
	return nil, fmt.Errorf("%s has no private key in PEM: make one with "+
		"\"openssl ecparam -genkey -name prime256v1 -noout\"", file)
}
