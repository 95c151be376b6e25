"""Since when does it happen? Releases between two, each tried for real; where outcomes differ is a border."""
