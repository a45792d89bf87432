"""Which event loop connections and stores live on."""
