// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storage gives claims their volumes: directories on the node's disk, below one directory.
//
// It is what a cloud's or a vendor's provisioner is elsewhere, and does what Kubernetes expects of one: the controller
// manager says by an annotation which claims it is to serve, and binds what it creates. The volumes are of the kind
// local, because the kubelet applies a pod's fsGroup to those, so that a pod that is not root can write to them. To the
// kind hostPath, which the controller manager would make by itself (--enable-hostpath-provisioner), it does not, and
// those belong to root alone. Nothing keeps a pod from writing more than it has claimed.
package storage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"
)

// API is what is asked of the API server. Package apiclient has it.
type API interface {
	Get(ctx context.Context, path string) ([]byte, error)
	Create(ctx context.Context, path string, object any) error
	Delete(ctx context.Context, path string) error
	Watch(ctx context.Context, path string, changed func()) error
}

// Provisioner makes and removes volumes.
type Provisioner struct {
	API API
	// Nodes that have the volumes: they share the disk.
	Nodes []string
	// Dir is the directory of the volumes' directories. Nothing else is in it.
	Dir string
	Log *slog.Logger
	// Retry is how long what failed rests; default: 1 s.
	Retry time.Duration
}

const (
	classesPath = "/apis/storage.k8s.io/v1/storageclasses"
	claimsPath  = "/api/v1/persistentvolumeclaims"
	volumesPath = "/api/v1/persistentvolumes"
)

// Install creates the default StorageClass, whose claims Serve gives volumes.
func (p *Provisioner) Install(ctx context.Context) error {
	return p.API.Create(ctx, classesPath, class())
}

// Serve makes and removes volumes until ctx ends. Whatever happens to a claim or a volume is only a reason to look at
// all of them: there are few, and nothing is remembered that could be wrong.
func (p *Provisioner) Serve(ctx context.Context) {
	if p.Retry == 0 {
		p.Retry = time.Second
	}
	bell := make(chan struct{}, 1)
	ring := func() {
		select {
		case bell <- struct{}{}:
		default: // it rings already
		}
	}
	for _, path := range []string{claimsPath, volumesPath} {
		go p.listen(ctx, path, ring)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-bell:
		}
		if err := p.pass(ctx); err != nil && ctx.Err() == nil {
			p.Log.Warn("volumes could not all be made or removed, trying again", "error", err)
			time.AfterFunc(p.Retry, ring)
		}
	}
}

// listen rings for whatever happens. A watch begins with all objects that are there, so that nothing is missed between
// two of them, such as while the API server restarts.
func (p *Provisioner) listen(ctx context.Context, path string, ring func()) {
	for {
		if err := p.API.Watch(ctx, path, ring); err != nil && ctx.Err() == nil {
			p.Log.Warn("a watch ended, starting it again", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(p.Retry):
		}
	}
}

// pass looks at all claims and volumes once. One that cannot be served keeps no other waiting.
func (p *Provisioner) pass(ctx context.Context) error {
	claims, err := list[claim](ctx, p.API, claimsPath)
	if err != nil {
		return err
	}
	volumes, err := list[volume](ctx, p.API, volumesPath)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(p.Dir)
	if err != nil {
		return fmt.Errorf("opening the directory of volumes: %w", err)
	}
	defer func() { _ = root.Close() }() // Nothing was written to it.
	var failed []error
	there := map[string]bool{}
	for i := range volumes {
		name := volumes[i].Metadata.Name
		there[name] = true
		if volumes[i].isOver() {
			failed = append(failed, p.remove(ctx, root, name))
		}
	}
	for i := range claims {
		if claims[i].waits() && !there[claims[i].volumeName()] {
			failed = append(failed, p.provision(ctx, root, &claims[i]))
		}
	}
	return errors.Join(failed...)
}

// provision makes a directory, and then the volume, which the controller manager binds. Its name follows from the
// claim's, so that a claim never has two.
func (p *Provisioner) provision(ctx context.Context, root *os.Root, c *claim) error {
	name := c.volumeName()
	// The mode is that of the root of a new file system: it takes fsGroup to open it to others, as it does there.
	if err := root.Mkdir(name, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("making the directory of volume %s: %w", name, err)
	}
	if err := p.API.Create(ctx, volumesPath, volumeFor(c, p.Nodes, p.Dir)); err != nil {
		return fmt.Errorf("creating volume %s: %w", name, err)
	}
	p.Log.Info("volume created", "volume", name, "namespace", c.Metadata.Namespace, "claim", c.Metadata.Name)
	return nil
}

// remove removes the directory before the volume: as long as that is there, what is left will be removed again.
func (p *Provisioner) remove(ctx context.Context, root *os.Root, name string) error {
	if err := root.RemoveAll(name); err != nil {
		return fmt.Errorf("removing the directory of volume %s: %w", name, err)
	}
	if err := p.API.Delete(ctx, volumesPath+"/"+name); err != nil {
		return fmt.Errorf("deleting volume %s: %w", name, err)
	}
	p.Log.Info("volume deleted", "volume", name)
	return nil
}

func list[T any](ctx context.Context, api API, path string) ([]T, error) {
	raw, err := api.Get(ctx, path)
	if err != nil {
		return nil, err
	}
	var all struct{ Items []T }
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return all.Items, nil
}
