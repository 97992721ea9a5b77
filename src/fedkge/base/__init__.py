"""What has no subject: errors, registries, text, small files."""
